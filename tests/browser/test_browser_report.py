"""The page in a real browser: alone on the disk, by mouse, by key, small and large, light and dark, never tricked."""

import json

import numpy as np
import pytest
from PIL import Image
from system_chromium import Heard, chromium, drag, find_browser, open_page, wait_for_paint, wait_until

from conftest import SMALL
from prodsc import PRODSC
from prodsc.report.clusters import cluster_cards
from prodsc.report.fit_page import OtherFit, _clusters, _map, write_fit_page
from prodsc.report.layout import Layout
from prodsc.report.map_data import PageRows, map_data
from prodsc.report.page import write_page
from prodsc.report.previews import RowPreviews

EVIL = """<img src=x onerror="hit=1"></script><script>hit=2</script>'"&amp;<b>"""


@pytest.fixture(scope="module")
def browser():
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium here: apt install chromium, or name one with PRODSC_BROWSER")
    with chromium(path) as running:
        yield running


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    """Pages of a map and cards over n made-up rows, without a fit; each is written once."""
    folder = tmp_path_factory.mktemp("pages")

    def page(n, k=10):
        path = folder / f"{n}-{k}.html"
        if not path.exists():
            rng = np.random.default_rng(0)
            labels = np.sort(rng.integers(0, k, n))
            angle = 2 * np.pi * labels / k
            places = 10 * np.stack([np.cos(angle), np.sin(angle)], 1) + rng.standard_normal((n, 2))
            Z = np.eye(k, 12)[labels].astype(np.float32) + 0.1 * rng.standard_normal((n, 12)).astype(np.float32)
            sizes = np.bincount(labels, minlength=k).tolist()
            previews = RowPreviews(image=lambda i: Image.new("L", (8, 8), i % 256))
            sure, second = rng.random(n), (labels + 1) % k
            shown = PageRows(np.arange(n), places, labels, sure, second, sizes, previews)
            made = cluster_cards(Z, labels, sure, second, sizes)
            data, notes = map_data(shown, [row for card in made for row in card.rows()])
            sections = [_map(shown, Layout(places, n), n, notes), _clusters(shown, made)]
            write_page(path, title=f"{n} rows", facts={"rows": f"{n:,}"}, sections=sections, data=data)
        return path

    return page


@pytest.fixture(scope="module")
def whole(tmp_path_factory, blobs):
    """The page of a real fit in which every word that can come from outside is an attack."""
    X, y = blobs
    model = PRODSC.from_flat(3, **SMALL).fit(X)
    n = len(X)
    previews = RowPreviews(
        ids=[f"{EVIL}{i}" for i in range(n)],
        image=lambda i: Image.new("RGB", (20, 10), (i, 0, 0)),
        texts=[f"{EVIL} text {i}" for i in range(n)],
        columns={EVIL: X[:, 0], "words": np.array([EVIL] * n)},
    )
    made = {
        "command": EVIL, "data": {"file": EVIL, "shape": X.shape, "dtype": "float64", "fingerprint": "f"},
        "parameters": {"n_clusters": 3, EVIL: EVIL}, "seconds": 1, "peak_memory_mb": 1, "versions": {"prodsc": "1"},
    }  # fmt: skip
    path = tmp_path_factory.mktemp("whole") / "<b>report's page.html"
    write_fit_page(
        path, EVIL, model, X, model.predict_proba(X), facts={EVIL: EVIL}, previews=previews, y=np.roll(y, 2),
        classes=[EVIL, "b", "c"], columns=[EVIL] * 12, made=made, other=OtherFit(EVIL, np.roll(model.labels_, 1)),
    )  # fmt: skip
    return path


def state(page):
    wait_for_paint(page)
    return page.evaluate("report.state()")


def spot(page, i):
    """Where row i is in the window."""
    left, top, _, _ = box(page)
    x, y = page.evaluate(f"report.place({i})")
    return left + x, top + y


def box(page):
    """The map in the window: left, top, right, bottom."""
    return page.evaluate("(({left, top, right, bottom}) => [left, top, right, bottom])(marks.getBoundingClientRect())")


def text(page, selector):
    return page.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")


@pytest.mark.parametrize("n", [1797, 100_000])
def test_hover_click_lasso_and_search(browser, mapped, n):
    heard = Heard()
    page = open_page(browser, mapped(n), width=1300, height=1000, heard=heard)
    assert state(page) == {"n": n, "current": -1, "isolated": -1, "picked": 0, "scale": 1, "x": 0.5, "y": 0.5}
    page.evaluate("document.getElementById('map').scrollIntoView({behavior: 'instant'})")

    # search by id: the row is in the middle, zoomed in, and described
    page.evaluate("search.focus()")
    page.keyboard.insert_text("1234")
    assert text(page, "#matches button").startswith("1234")
    page.keyboard.press("Enter")
    found = state(page)
    assert found["current"] == 1234
    assert found["scale"] >= 3
    page.evaluate("scrollTo({top: scrollY, behavior: 'instant'})")
    assert "row 1234" in text(page, "#tip")
    assert page.evaluate("tip.querySelector('.thumb').style.backgroundImage.startsWith('url(\"blob:')")

    # hover: what is under the pointer, and nothing beside the dots
    wait_until(page, "Math.abs(document.getElementById('map').getBoundingClientRect().top) < 120")
    page.evaluate("document.getElementById('map').scrollIntoView({behavior: 'instant'})")
    x, y = spot(page, 1234)
    page.mouse.move(x, y)
    assert state(page)["current"] == 1234
    label = page.evaluate("Number(document.querySelector('#tip dd').textContent)")
    assert "confidence" in text(page, "#tip")
    page.mouse.move(20, 20)
    assert state(page)["current"] == -1
    assert page.evaluate("tip.hidden")

    # a click isolates the cluster, a click beside the dots shows all again
    page.mouse.click(x, y)
    assert state(page)["isolated"] == label
    assert page.evaluate(f"document.querySelector('#legend [data-cluster=\"{label}\"]').ariaPressed") == "true"
    page.evaluate("whole.click()")
    left, top, right, bottom = box(page)
    middle = ((left + right) / 2, (top + bottom) / 2)
    page.mouse.click(*middle)
    assert state(page)["isolated"] == -1

    # a lasso around everything, then around the left half, by Shift and by button
    left, top, right, bottom = left + 2, top + 2, right - 2, bottom - 2
    drag(page, [(left, top), (right, top), (right, bottom), (left, bottom)], shift=True)
    assert state(page)["picked"] == n
    page.evaluate("lasso.click()")
    drag(page, [(left, top), (middle[0], top), (middle[0], bottom), (left, bottom)])
    some = state(page)["picked"]
    at = f"Array.from({{length: {n}}}, (_, i) => report.place(i)[0])"
    assert some == page.evaluate(f"{at}.filter((x) => x < {middle[0] - box(page)[0]}).length")
    assert 0 < some < n
    assert f"{some} rows selected" in text(page, "#picked")
    assert page.evaluate("document.querySelectorAll('#picked .row').length") == 60
    page.evaluate("move.click()")

    # dragging moves, the wheel zooms once the map has the focus
    before = state(page)
    drag(page, [middle, (middle[0] + 60, middle[1]), (middle[0] + 120, middle[1])])
    assert state(page)["x"] < before["x"]
    page.mouse.move(*middle)
    page.mouse.wheel(0, -300)
    wait_for_paint(page)
    assert state(page)["scale"] > before["scale"]
    # Smooth: a frame takes less than fifty million steps of arithmetic do here and now, whatever else the machine does.
    steps = "(() => { const t = performance.now(); for (let i = 0, s = 0; i < 5e7; i++) kept = s = (s * 31 + i) | 0; "
    assert min(page.evaluate("report.frame()") for _ in range(5)) < page.evaluate(
        steps + "return performance.now() - t; })()"
    )
    assert heard.complaints == heard.requests == []
    page.close()


def test_by_key_alone(browser, mapped):
    page = open_page(browser, mapped(1797))
    order = []
    for _ in range(60):
        page.keyboard.press("Tab")
        order.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
            )
        )
        if order[-1] == "marks":
            break
    assert [each for each in order if each in ("search", "colour", "lasso", "in", "marks")] == [
        "search",
        "colour",
        "lasso",
        "in",
        "marks",
    ]
    assert page.evaluate("getComputedStyle(marks).outlineStyle") != "none"
    page.keyboard.press("ArrowRight")
    first = state(page)["current"]
    assert first >= 0
    assert f"Row {first}" in text(page, "#said")  # read aloud
    page.keyboard.press("ArrowRight")
    second = state(page)["current"]
    assert page.evaluate(f"report.place({second})[0] > report.place({first})[0]")
    page.keyboard.press("Enter")
    assert state(page)["isolated"] >= 0
    page.keyboard.press("Escape")
    assert state(page)["isolated"] == -1
    page.keyboard.press("+")
    assert state(page)["scale"] == pytest.approx(1.4)
    page.keyboard.press("Shift+ArrowDown")
    assert state(page)["y"] < 0.5
    page.keyboard.press("0")
    assert state(page) | {"current": 0} == {
        "n": 1797,
        "current": 0,
        "isolated": -1,
        "picked": 0,
        "scale": 1,
        "x": 0.5,
        "y": 0.5,
    }
    page.keyboard.press("Tab")  # the legend: a button per cluster
    page.keyboard.press("Enter")
    assert state(page)["isolated"] == 0
    page.close()


def test_everything_from_outside_is_shown_as_text(browser, whole):
    heard = Heard()
    page = open_page(browser, whole, width=1300, height=1000, heard=heard)
    page.evaluate("search.focus()")
    page.keyboard.insert_text("<img")
    assert EVIL in text(page, "#matches button")
    page.keyboard.press("Enter")
    wait_until(page, "!tip.hidden")
    tip = text(page, "#tip")
    assert tip.count(EVIL) >= 4  # id, known class or not, name and value of columns, text
    for mode in ("class", "moved", "confidence"):
        page.evaluate(f"colour.value = '{mode}'; colour.dispatchEvent(new Event('change'))")
        wait_for_paint(page)
        if mode == "class":
            assert EVIL in text(page, "#legend")
    for selector in ("h1", "title", ".facts", "#clusters", "#known", "#moved", "#made"):
        assert EVIL in text(page, selector), selector
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    foreign = "img:not(#print, [src^='data:image/png']), main b:not(#tip b, #matches b, #keys b), main script"
    assert page.evaluate(f'document.querySelectorAll("{foreign}").length') == 0
    assert page.evaluate("typeof hit") == "undefined"
    assert heard.complaints == heard.requests == []
    page.close()


def test_no_script_but_ours_may_run(browser, tmp_path, mapped):
    """Even if escaping failed: the page's policy names its one script by its digest."""
    path = tmp_path / "page.html"
    path.write_text(
        mapped(1797)
        .read_text(encoding="utf-8")
        .replace("<main>", "<main><script>hit = 1</script><img src='https://example.org/x.png' onerror='hit = 2'>"),
        encoding="utf-8",
    )
    heard = Heard()
    page = open_page(browser, path, heard=heard)
    assert page.evaluate("typeof hit") == "undefined"
    assert state(page)["n"] == 1797
    assert len(heard.complaints) >= 2  # the refusals
    page.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_narrow_and_wide_light_and_dark(browser, whole, dark):
    page = open_page(browser, whole, width=1600, height=1000, dark=dark)
    for width in (1600, 375):
        page.set_viewport_size({"width": width, "height": 800})
        wait_for_paint(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        sticking_out = """[...document.querySelectorAll('main *')].filter((e) => {
            if (e.closest('.scroll, nav, .side, svg') || e.closest('#board')) return false;
            const box = e.getBoundingClientRect(); return box.width && box.right > innerWidth + 1;
        }).map((e) => e.outerHTML.slice(0, 80))"""
        assert page.evaluate(sticking_out) == []
        assert page.evaluate("marks.getBoundingClientRect().height") > 200
    # text against its background: WCAG asks for 4.5
    contrast = """(() => {
        const linear = (v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
        const light = (element, what) => {
            const [r, g, b] = getComputedStyle(element)[what].match(/[\\d.]+/g).map((v) => linear(v / 255));
            return .2126 * r + .7152 * g + .0722 * b;
        };
        const card = light(document.querySelector('.card'), 'backgroundColor');
        return ['h2', '.lead', '.quiet', 'dd', 'summary', '.verdict', '.row .id'].map((each) => {
            const ink = light(document.querySelector('.card ' + each), 'color');
            return (Math.max(ink, card) + .05) / (Math.min(ink, card) + .05);
        });
    })()"""
    assert min(page.evaluate(contrast)) > 4.5
    paper = page.evaluate(
        "[...dots.getContext('2d').getImageData(1, 1, 1, 1).data.slice(0, 3)].reduce((a, b) => a + b)"
    )
    assert (paper < 150) == dark
    page.close()


COUNT_DRAWING = """
window.drawn = 0;
const canvas = CanvasRenderingContext2D.prototype;
for (const name of Object.getOwnPropertyNames(canvas)) {
    const {value} = Object.getOwnPropertyDescriptor(canvas, name);
    if (typeof value === "function") canvas[name] = function (...given) {
        window.drawn += 1;
        return value.apply(this, given);
    };
}
"""


def test_the_work_before_the_first_paint_is_bounded(browser, mapped):
    """Rows are dots on a canvas: more rows are neither more elements of the page nor more drawing calls."""
    elements, drawn = [], []
    for n in (2_000, 10_000):
        page = open_page(browser, mapped(n, 100), width=1300, height=1000, before=COUNT_DRAWING)
        wait_for_paint(page)
        elements.append(page.evaluate("document.querySelectorAll('*').length"))
        page.evaluate("(() => { drawn = 0; report.frame(); })()")
        drawn.append(page.evaluate("drawn"))
        page.close()
    assert abs(elements[1] - elements[0]) < 100
    assert 0 < max(drawn) < 300  # three calls for each cluster, whatever the number of rows


def test_shapes_tell_many_clusters_apart(browser, mapped):
    """Colours repeat after 20 clusters; colour and shape together do not within 100."""
    page = open_page(browser, mapped(10_000, 100), width=1300, height=1000)
    previews = page.evaluate(
        "[...document.querySelectorAll('#legend path')].map((p) => p.getAttribute('d') + p.getAttribute('fill'))"
    )
    assert len(previews) == len(set(previews)) == 100
    page.close()


def test_paper_is_white_and_has_the_dots(browser, mapped):
    """Chromium prints canvases poorly, so a picture of the map stands in for them."""
    page = open_page(browser, mapped(1797), width=1300, height=1000, dark=True)
    page.pdf()  # sends beforeprint and afterprint
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    shown = page.evaluate("""(async () => {
        const image = document.getElementById('print'), c = document.createElement('canvas').getContext('2d');
        await image.decode();
        Object.assign(c.canvas, {width: image.naturalWidth, height: image.naturalHeight});
        c.drawImage(image, 0, 0);
        const {data} = c.getImageData(0, 0, c.canvas.width, c.canvas.height), [r, g, b] = data;
        let coloured = 0;
        for (let i = 0; i < data.length; i += 4) coloured += Math.abs(data[i] - data[i + 2]) > 60;
        return [getComputedStyle(image).display, getComputedStyle(dots).display, r + g + b, coloured > 5000,
            document.querySelectorAll('details:not([open])').length];
    })()""")
    assert shown == ["block", "none", 3 * 255, True, 0]
    page.emulate_media(media="null")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") > 0
    page.close()


def test_a_click_on_a_card_finds_the_row_and_its_thumbnail_is_its_own(browser, mapped):
    page = open_page(browser, mapped(1797), width=1300, height=1000)
    wait_until(page, "!!document.querySelector('#clusters .thumb')")
    i = page.evaluate(
        "(() => { const b = document.querySelector('#cluster-3 .row'); b.click(); return Number(b.dataset.point); })()"
    )
    wait_until(page, f"report.state().current === {i}")
    shade = page.evaluate("""(async () => {
        const span = document.querySelector('#tip .thumb'), s = span.style, image = new Image();
        image.src = s.backgroundImage.slice(5, -2);
        await image.decode();
        const scale = image.width / parseFloat(s.backgroundSize), c = document.createElement('canvas').getContext('2d');
        c.drawImage(image, ...s.backgroundPosition.split(' ').map((v) => parseFloat(v) * scale));
        return c.getImageData(4, 4, 1, 1).data[0];
    })()""")
    assert abs(shade - i % 256) <= 3  # the picture of row i is a square of that grey
    page.close()
