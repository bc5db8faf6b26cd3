"""Checks of the built site: every link and anchor, the search, and pictures of four pages at two widths.

    python docs/check_site.py docs/_build/html [--browser]

Addresses of other sites are only listed, since the check must run without a network.
"""

import argparse
import functools
import http.server
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Page as BrowserPage

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from system_chromium import Heard, chromium, find_browser

WIDTHS = (1400, 375)  # a desk and a telephone
PAGES = {
    "front": "index.html",
    "gallery": "gallery/index.html",
    "api": "api/prodsc.PRODSC.html",
    "example": "gallery/start/plot_digits.html",
    "guide": "guide/index.html",
}
QUERIES = ("outlier", "gamma_bound", "torchrun")


class Page(HTMLParser):
    """The links of a page, what it loads, and the anchors that others may link to."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what matters of one element."""
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        found = [value for name in ("href", "src") if (value := values.get(name))]
        self.links += found
        if tag in ("script", "img", "link"):
            self.loads += found


def read_pages(site: Path) -> dict[Path, Page]:
    """All pages of the site; those in _static are templates of the theme."""
    return {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}


def is_elsewhere(link: str) -> bool:
    """Whether a link leads to another site, or holds its content itself."""
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc)


def broken_links(pages: dict[Path, Page]) -> Iterator[str]:
    """One sentence for each link inside the site that leads nowhere."""
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if is_elsewhere(link):
                continue
            if not target.exists():
                yield f"{path.name}: {link} does not exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.name}: {link} has no such anchor"


def loaded_from_elsewhere(pages: dict[Path, Page]) -> Iterator[str]:
    """One sentence for each script, style and picture that a reader without a network would miss."""
    for path, page in pages.items():
        yield from (f"{path.name} loads {link}" for link in page.loads if urlsplit(link).netloc)


def in_browser(site: Path, shots: Path) -> list[str]:
    """Take pictures, and ask the search; sentences about what went wrong."""
    path = find_browser()
    if path is None:
        return ["there is no Chromium for the pictures and the search; install it, or leave out --browser"]
    shots.mkdir(parents=True, exist_ok=True)
    problems: list[str] = []
    with served(site) as home, chromium(path) as browser:
        for width in WIDTHS:
            tab = browser.new_page(viewport={"width": width, "height": 900})
            heard = Heard()
            heard.listen(tab, home)
            problems += [*take_pictures(tab, home, width, shots), *heard.complaints, *heard.requests]
        for query in QUERIES:
            tab = browser.new_page()
            tab.goto(f"{home}/search.html?q={query}")
            hits = tab.locator("#search-results ul.search li")
            hits.first.wait_for()
            tab.wait_for_function("document.querySelector('.search-summary')?.textContent.includes('found')")
            print(f"search for {query!r}: {hits.count()} pages")
            tab.screenshot(path=shots / f"search-{query}.png")
    return problems


def take_pictures(tab: BrowserPage, home: str, width: int, shots: Path) -> Iterator[str]:
    """Pictures of some pages; a sentence for each that is wider than the screen."""
    for name, page in PAGES.items():
        tab.goto(f"{home}/{page}", wait_until="load")
        tab.screenshot(path=shots / f"{name}-{width}.png", full_page=True)
        wide = tab.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            yield f"{page} is {wide} pixels wide on a screen of {width}"


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site, served on this machine alone."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: object) -> None:
        """Not printed."""


def main() -> None:
    """Print what was checked; exit with 1 if something is wrong."""
    parser = argparse.ArgumentParser(description="Check the built site.")
    parser.add_argument("site", type=Path)
    parser.add_argument("--browser", action="store_true", help="also take pictures and ask the search, in Chromium")
    options = parser.parse_args()
    site = options.site.resolve()
    pages = read_pages(site)
    problems = [*broken_links(pages), *loaded_from_elsewhere(pages)]
    if options.browser:
        problems += in_browser(site, site.parent / "shots")
    elsewhere = {link for page in pages.values() for link in page.links if urlsplit(link).netloc}
    print(*problems, *sorted(f"other site, not followed: {link}" for link in elsewhere), sep="\n")
    inside = sum(not is_elsewhere(link) for page in pages.values() for link in page.links)
    print(f"{len(pages)} pages, {inside} links inside the site, {len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
