"""Headless Chromium through chromedriver, with the standard library alone."""
import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-color-profile=srgb"]
KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "space": " ",
        "tab": "\ue004"}


def missing():
    """What is not installed, or None."""
    if not shutil.which("chromedriver"):
        return "chromedriver"
    return None if any(map(shutil.which, NAMES)) else "Chromium"


class Browser:
    """A window of Chromium."""

    def __init__(self, port, width, height, arguments):
        self.url = f"http://127.0.0.1:{port}"
        self.open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
        options = {"args": [*FLAGS, f"--window-size={width},{height}", *arguments],
                   "binary": next(filter(None, map(shutil.which, NAMES)))}
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

    def get(self, url):
        """Open a page and wait until it is loaded."""
        self.ask("url", {"url": url})

    def run(self, script, *arguments):
        """What a script that ends in `return ...` gives."""
        return self.ask("execute/sync", {"script": script, "args": arguments})

    def press(self, *names):
        """Keys, as a user hits them."""
        actions = [{"type": kind, "value": KEYS[name]} for name in names
                   for kind in ("keyDown", "keyUp")]
        self.ask("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector):
        """A click with the mouse."""
        element = self.ask("element", {"using": "css selector", "value": selector})
        self.ask(f"element/{next(iter(element.values()))}/click", {})

    def console(self):
        """What was written to the console since it was last asked: errors and warnings, too."""
        return [entry["message"] for entry in self.ask("se/log", {"type": "browser"})]

    def size(self, width, height, dark=False, motion=True):
        """Show pages on a screen of this size, in light or dark, with or without motion."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                    {"name": "prefers-reduced-motion",
                     "value": "no-preference" if motion else "reduce"}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def picture(self, file):
        """A PNG of the whole page."""
        answer = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def browser(profile, width=1280, height=900, arguments=()):
    """A browser that ends with the block; `profile` is an empty directory for its files."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    window = None
    try:
        for attempt in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1 if attempt < 99 else 0)
        window = Browser(port, width, height, [f"--user-data-dir={profile}", *arguments])
        yield window
    finally:
        if window:
            window.ask("", method="DELETE")
        driver.terminate()
        driver.wait()
