"""A headless Chromium driven over a pipe by the DevTools protocol: JSON messages, each with a zero byte behind it."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from itertools import count
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 60.0  # for one answer: a busy machine is slow, a dead browser is closed


def find_browser():
    """The path of a Chromium, or None; PRODSC_BROWSER names another one."""
    named = os.environ.get("PRODSC_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class BrowserError(Exception):
    pass


class Chromium:
    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="prodsc-chromium-")
        from_us, self.out = self._pipe()
        self.into, to_us = self._pipe()
        words = [
            path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
            "--disable-features=Translate,OptimizationHints,MediaRouter", "--mute-audio", "--remote-debugging-pipe",
            f"--user-data-dir={self.profile}", "about:blank",
        ]  # fmt: skip
        quiet = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, from_us, 3), (os.POSIX_SPAWN_DUP2, to_us, 4)]  # where Chromium looks for them
        actions += [(os.POSIX_SPAWN_DUP2, quiet, stream) for stream in (0, 1, 2)]
        self.pid = os.posix_spawn(path, words, os.environ | {"HOME": self.profile}, file_actions=actions, setpgroup=0)
        for each in (from_us, to_us, quiet):
            os.close(each)
        self.numbers, self.events, self.buffer = count(1), [], b""

    @staticmethod
    def _pipe():
        """Both ends above 9, so that putting them in the place of 3 and 4 overwrites neither."""
        ends = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
        for end in ends:
            os.close(end)
        return high

    def call(self, method, session=None, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data) :]
        until = time.monotonic() + SECONDS
        while True:
            answer = self.receive(until)
            if answer is None:
                raise BrowserError(f"no answer to {method} in {SECONDS:.0f} s")
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                return None
            part = os.read(self.into, 2**20)
            if not part:
                raise BrowserError("the browser has gone")
            self.buffer += part
        first, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(first)

    def open(self, path, **how):
        return Page(self, Path(path).resolve().as_uri(), **how)

    def close(self):
        try:
            self.call("Browser.close")
        except (BrowserError, OSError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for end in (self.out, self.into):
            os.close(end)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """One tab. Everything it asks of a network and says on its console is kept."""

    def __init__(self, browser, address, width=1200, height=900, dark=False, scale=1, touch=False):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self(f"{domain}.enable")
        self.resize(width, height, scale)
        self.dress(dark)
        self("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def __call__(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def resize(self, width, height, scale=1):
        mobile = width < 600
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def dress(self, dark):
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", features=[feature])

    def run(self, script):
        """The value of an expression in the page."""
        found = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise BrowserError(f"{script}: {found['exceptionDetails'].get('exception', {}).get('description')}")
        return found["result"].get("value")

    def wait(self, condition, seconds=SECONDS):
        until = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > until:
                raise BrowserError(f"not within {seconds:.0f} s: {condition}")
            time.sleep(0.02)

    def frame(self):
        """Wait until the page has painted."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def mouse(self, kind, x, y, held=False, shift=False, **more):
        button = {"button": "left" if held or kind != "mouseMoved" else "none", "buttons": 1 if held else 0}
        self("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=8 if shift else 0, **button, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, held=True, clickCount=1)
        self.mouse("mouseReleased", x, y, clickCount=1)

    def drag(self, points, shift=False):
        self.mouse("mousePressed", *points[0], held=True, shift=shift, clickCount=1)
        for point in points[1:]:
            self.mouse("mouseMoved", *point, held=True, shift=shift)
        self.mouse("mouseReleased", *points[-1], shift=shift, clickCount=1)

    def key(self, name, shift=False):
        codes = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13, "Escape": 27, "Tab": 9}
        text = "\r" if name == "Enter" else name if len(name) == 1 else ""
        known = {"key": name, "modifiers": 8 if shift else 0, "windowsVirtualKeyCode": codes.get(name, 0)}
        self("Input.dispatchKeyEvent", type="keyDown", text=text, **known)
        self("Input.dispatchKeyEvent", type="keyUp", **known)

    def type(self, text):
        self("Input.insertText", text=text)

    def screenshot(self, path, whole=False):
        shot = self("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def _clip(self, whole):
        if not whole:
            return {}
        size = self("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def heard(self, *methods):
        return [e for e in self.browser.events if e.get("sessionId") == self.session and e.get("method") in methods]

    def complaints(self):
        """Errors and warnings on the console, exceptions, and everything the page's policy refused."""
        said = [
            e["params"] for e in self.heard("Runtime.consoleAPICalled") if e["params"]["type"] in ("error", "warning")
        ]
        logged = [e["params"] for e in self.heard("Log.entryAdded")]
        return said + logged + [e["params"] for e in self.heard("Runtime.exceptionThrown")]

    def requests(self):
        """Addresses that were asked for, apart from the file itself and what it holds."""
        asked = [e["params"]["request"]["url"] for e in self.heard("Network.requestWillBeSent")]
        return [address for address in asked[1:] if not address.startswith(("data:", "blob:"))]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
