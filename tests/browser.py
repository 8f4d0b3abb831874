"""Headless Chromium through chromedriver, with the standard library alone."""
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
CONTRAST = """
const channel = x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
const light = rgb => [0.2126, 0.7152, 0.0722].reduce(
  (sum, weight, i) => sum + weight * channel(rgb[i] / 255), 0);
const numbers = color => color.match(/[\\d.]+/g).map(Number);
function behind(element) {
  for (; element; element = element.parentElement) {
    const rgba = numbers(getComputedStyle(element).backgroundColor);
    if (rgba.length === 3 || rgba[3] === 1) return rgba;
  }
  return [255, 255, 255];
}
let least = 21;
for (const element of document.querySelectorAll('body *')) {
  const text = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  if (!text || !element.getClientRects().length) continue;
  if (element.closest('script, noscript, .bands, .figure1 a')) continue;
  const style = getComputedStyle(element);
  const ink = element.closest('svg') ? style.fill : style.color;
  const [a, b] = [light(numbers(ink)), light(behind(element))];
  least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
}
return least"""


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
        self.ask(f"element/{self.element(selector)}/click", {})

    def element(self, selector):
        """The identifier of an element."""
        found = self.ask("element", {"using": "css selector", "value": selector})
        return next(iter(found.values()))

    def console(self):
        """What was written to the console since it was last asked: errors and warnings, too."""
        return [entry["message"] for entry in self.ask("se/log", {"type": "browser"})]

    def contrast(self):
        """The least contrast of a text with what is behind it."""
        return self.run(CONTRAST)

    def displayed(self, selector):
        """Whether an element is shown; works without a script, too."""
        return self.ask(f"element/{self.element(selector)}/displayed")

    def size(self, width, height, dark=False, media="", scale=1):
        """Show pages on a screen of this size, in light or dark, or as if printed."""
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=scale, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)


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
