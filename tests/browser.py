"""Headless Chromium through chromedriver, with the standard library alone."""
import contextlib
import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-color-profile=srgb"]
KEYS = {"left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010", "space": " ",
        "tab": "\ue004"}
INKS = """
const solid = color => !/rgba.*, [^1]/.test(color);
return [...document.querySelectorAll('body *')].filter(element =>
  [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())
  && element.getClientRects().length && !element.closest('script, noscript, .bands, .figure1 a')
).map(element => {
  const style = getComputedStyle(element), ink = element.closest('svg') ? style.fill : style.color;
  while (!solid(getComputedStyle(element).backgroundColor)) element = element.parentElement;
  return [ink, getComputedStyle(element).backgroundColor];
})"""


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

    def contrast(self):
        """The least contrast of a text with what is behind it."""
        pairs = [[[int(x) for x in re.findall(r"\d+", color)] for color in pair]
                 for pair in self.run(INKS)]
        return min(contrast(*pair) for pair in pairs)


def contrast(*colors):
    """Of two colors (red, green, blue), as accessibility guidelines define it: 1 to 21."""
    lights = []
    for color in colors:
        shares = [x / 255 for x in color]
        r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares)
        lights.append(0.2126 * r + 0.7152 * g + 0.0722 * b)
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@contextlib.contextmanager
def browser(profile):
    """A browser that ends with the block; `profile` is an empty directory for its files."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    window = None
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        window = Browser(port, profile)
        yield window
    finally:
        if window:
            window.ask("", method="DELETE")
        driver.terminate()
        driver.wait()
