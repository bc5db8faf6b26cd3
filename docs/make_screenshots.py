"""`make screenshots`: the pictures of the documents, taken of the report of a real run of digits in headless Chromium.

python docs/make_screenshots.py            # fits digits first, about 20 s
python docs/make_screenshots.py run/       # takes the pictures of a run that is there
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
BUDGET = 400_000  # bytes of all pictures
ROW = 100  # the row that the mouse points at
sys.path.insert(0, str(ROOT / "tests" / "browser"))

from chromium import Chromium, Page, find_browser  # noqa: E402 - the browser that the tests drive


def main() -> None:
    browser_path = find_browser()
    if browser_path is None:
        sys.exit("no Chromium here: apt install chromium, or name one with PRODSC_BROWSER.")
    with tempfile.TemporaryDirectory() as folder:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else fit(Path(folder) / "run")
        if not (run / "report.html").is_file():
            sys.exit(f"{run} has no report.html; name the folder of a finished run.")
        IMAGES.mkdir(exist_ok=True)
        browser = Chromium(browser_path)
        try:
            pictures(browser, run / "report.html")
        finally:
            browser.close()
    sizes = {path.name: path.stat().st_size for path in sorted(IMAGES.glob("*.png"))}
    for name, size in sizes.items():
        print(f"{IMAGES.relative_to(ROOT) / name}: {size / 1000:.0f} kB")
    if sum(sizes.values()) > BUDGET:
        sys.exit(f"the pictures take {sum(sizes.values()) / 1000:.0f} kB, more than {BUDGET / 1000:.0f} kB.")


def fit(run: Path) -> Path:
    subprocess.run([sys.executable, "-m", "prodsc", "fit", "digits", "-k", "10", "--out", str(run)], check=True)
    return run


def pictures(browser: Chromium, report: Path) -> None:
    """The map with one row under the mouse, and the first cluster cards."""
    page = browser.open(report, width=1100, height=1150)
    show(page, "map")
    left, top = page.run("(({left, top}) => [left, top])(marks.getBoundingClientRect())")
    x, y = page.run(f"report.place({ROW})")
    page.mouse("mouseMoved", left + x, top + y)
    take(page, "map", "report.png", height=870)
    show(page, "clusters")
    take(page, "clusters", "clusters.png", height=500)


def show(page: Page, section: str) -> None:
    page.run(f"document.getElementById('{section}').scrollIntoView({{behavior: 'instant'}})")
    page.frame()


def take(page: Page, section: str, name: str, height: int = 10_000) -> None:
    """What the window shows of a section, in 256 colours: a quarter of the bytes, and no eye sees the difference."""
    page.frame()
    box = page.run(f"(({{left, top, right, bottom}}) => [left, top, right, bottom])({section}.getBoundingClientRect())")
    left, top, right, bottom = box
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        page.screenshot(file.name)
        window = Image.open(file.name).convert("RGB")
    part = window.crop((left, max(0, top), right, min(bottom, max(0, top) + height, window.height)))
    few = part.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few.save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
