"""Headless Chromium through chromedriver, with the standard library alone."""
import contextlib
import json
import re
import subprocess
import urllib.error
import urllib.request

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-color-profile=srgb"]
KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "space": " ",
        "tab": "\ue004"}


class Browser:
    """A window of Chromium."""

    def __init__(self, port, profile):
        self.url = f"http://127.0.0.1:{port}"
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        options = {"args": [*FLAGS, f"--user-data-dir={profile}"]}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self.ask("session", {"capabilities": {"alwaysMatch": capabilities}})["sessionId"]
        self.url += f"/session/{session}"

    def ask(self, path, body=None, method=None):
        """One command of the WebDriver protocol."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}".rstrip("/"), content, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with self.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    def command(self, name, **parameters):
        """One command of the DevTools protocol."""
        return self.ask("goog/cdp/execute", {"cmd": name, "params": parameters})

    def get(self, url, width, height, dark=False, media="", scale=1):
        """Open a page on a screen of this size, in light or dark, or as if printed."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=scale, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)
        self.ask("url", {"url": url})

    def run(self, script, *arguments):
        """What a script that ends in `return ...` gives."""
        return self.ask("execute/sync", {"script": script, "args": arguments})

    def press(self, *names):
        """Keys, as a user hits them."""
        actions = [{"type": kind, "value": KEYS[name]} for name in names
                   for kind in ("keyDown", "keyUp")]
        self.ask("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def console(self):
        """What was written to the console since it was last asked: errors and warnings, too."""
        return [entry["message"] for entry in self.ask("se/log", {"type": "browser"})]


@contextlib.contextmanager
def browser(profile):
    """A browser that ends with the block; `profile` is an empty directory for its files."""
    command = ["chromedriver", "--port=0"]            # a free one, which it says
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
        try:
            started = next(line for line in driver.stdout if "successfully" in line)
            window = Browser(re.search(r"port (\d+)", started)[1], profile)
            yield window
            window.ask("", method="DELETE")
        finally:
            driver.terminate()
