"""`make screenshots`: the pictures of the documents, taken from the report of a run of digits in headless Chromium.

python docs/make_screenshots.py            # fits digits first, about 20 s
python docs/make_screenshots.py run/       # uses the report of a finished run
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
MAX_BYTES = 400_000  # of all pictures together
HOVERED_ROW = 100  # the row under the mouse
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main() -> None:
    browser_path = os.environ.get("PRODSC_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser_path is None:
        sys.exit("no Chromium found: apt install chromium, or set PRODSC_BROWSER to its path.")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else fit_digits(Path(folder) / "run")
        report = run / "report.html"
        if not report.is_file():
            sys.exit(f"{run} has no report.html; give the folder of a finished run.")
        IMAGES.mkdir(exist_ok=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=BROWSER_OPTIONS)
            page = browser.new_page(viewport={"width": 1100, "height": 1150})
            page.goto(report.resolve().as_uri())
            take_pictures(page)
            browser.close()
    sizes = {path.name: path.stat().st_size for path in sorted(IMAGES.glob("*.png"))}
    for name, size in sizes.items():
        print(f"{IMAGES.relative_to(ROOT) / name}: {size / 1000:.0f} kB")
    if sum(sizes.values()) > MAX_BYTES:
        sys.exit(f"the pictures take {sum(sizes.values()) / 1000:.0f} kB, more than {MAX_BYTES / 1000:.0f} kB.")


def fit_digits(run: Path) -> Path:
    subprocess.run([sys.executable, "-m", "prodsc", "fit", "digits", "-k", "10", "--out", str(run)], check=True)
    return run


def take_pictures(page: Page) -> None:
    """The map with one row under the mouse, and the first cluster cards."""
    scroll_to(page, "map")
    left, top = page.evaluate("(({left, top}) => [left, top])(marks.getBoundingClientRect())")
    x, y = page.evaluate(f"report.place({HOVERED_ROW})")
    page.mouse.move(left + x, top + y)
    save_section(page, "map", "report.png", height=870)
    scroll_to(page, "clusters")
    save_section(page, "clusters", "clusters.png", height=500)


def scroll_to(page: Page, section: str) -> None:
    page.evaluate(f"document.getElementById('{section}').scrollIntoView({{behavior: 'instant'}})")
    next_frame(page)


def next_frame(page: Page) -> None:
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def save_section(page: Page, section: str, name: str, height: int) -> None:
    """The visible part of a section in 256 colours, which takes a quarter of the bytes and looks the same."""
    next_frame(page)
    box = page.evaluate(
        f"(({{left, top, right, bottom}}) => [left, top, right, bottom])({section}.getBoundingClientRect())"
    )
    left, top, right, bottom = box
    window = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    part = window.crop((left, max(0, top), right, min(bottom, max(0, top) + height, window.height)))
    few_colours = part.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few_colours.save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
