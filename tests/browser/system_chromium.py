"""The system's Chromium, driven by Playwright. Nothing is downloaded: `playwright install` is not needed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def find_browser() -> str | None:
    """The path of a Chromium, or None; the environment variable PRODSC_BROWSER names another one."""
    return os.environ.get("PRODSC_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """A headless browser, closed at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Heard:
    """What a page wrote to its console, what was refused to it, and what it asked of the network."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def listen(self, page: Page, address: str) -> None:
        """Listen to a page; its own address and what it holds itself are no requests."""
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self._note(request.url, address))

    def _note(self, url: str, address: str) -> None:
        if not url.startswith((address, "data:", "blob:")):
            self.requests.append(url)


def open_page(
    browser: Browser,
    path: Path,
    width: int = 1200,
    height: int = 900,
    dark: bool = False,
    heard: Heard | None = None,
    before: str = "",
) -> Page:
    """A new tab with a page of the disk, loaded whole; `before` is a script that runs before the page's own."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
    page.set_default_timeout(60_000)  # a busy machine is slow
    address = Path(path).resolve().as_uri()
    if heard is not None:
        heard.listen(page, address)
    if before:
        page.add_init_script(before)
    page.goto(address)
    return page


def wait_for_paint(page: Page) -> None:
    """Wait until the page has painted twice."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")


def wait_until(page: Page, condition: str) -> None:
    """Wait until an expression is true.

    Playwright's `wait_for_function` calls `eval` inside the page, which the report's security policy forbids.
    """
    for _ in range(3000):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(20)
    raise AssertionError(f"not within a minute: {condition}")


def drag(page: Page, points: list[tuple[float, float]], shift: bool = False) -> None:
    """Press at the first point, move through the others, release at the last."""
    if shift:
        page.keyboard.down("Shift")
    page.mouse.move(*points[0])
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*point)
    page.mouse.up()
    if shift:
        page.keyboard.up("Shift")
