"""The page: complete in one file, escaped, described, and written whole or not at all."""

import base64
import io
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from prodsc.errors import OutputError
from prodsc.report.page import PageTable, render_page, write_page
from prodsc.report.style import COLOURS, HEAT

EVIL = """"'><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}&amp;"""


class Parsed(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.tags = []
        self.text = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def picture(text="", label=""):
    figure = Figure(figsize=(2, 1))
    figure.text(0.1, 0.5, text)
    figure.set_label(label)
    return figure


def full_page(word="plain"):
    return render_page(
        title=word,
        facts={word: word},
        tables=[PageTable(word, (word, word), ((word, word),))],
        figures=[(picture(label=word), word, word), (picture(), word, word)],
    )


def test_text_is_shown_and_never_run():
    plain, evil = Parsed(full_page()), Parsed(full_page(EVIL))
    assert [tag for tag, _ in evil.tags] == [tag for tag, _ in plain.tags]
    assert not evil.all("script")
    assert not [name for _, attributes in evil.tags for name in attributes if name.startswith("on")]
    # title, h1, name and value of the fact, five words of the table, heading and caption of two pictures
    assert evil.text.count(EVIL) == plain.text.count("plain") == 13
    assert [image["alt"] for image in evil.all("img")] == [EVIL, EVIL]


def test_page_needs_no_network():
    page = full_page()
    assert not [
        word for word in ("http://", "https://", "//cdn", "url(", "@import", "<link", "<script") if word in page
    ]
    assert all(image["src"].startswith("data:image/png;base64,") for image in Parsed(page).all("img"))
    policy = next(meta["content"] for meta in Parsed(page).all("meta") if "http-equiv" in meta)
    assert policy.startswith("default-src 'none'")


def test_pictures_are_sharp_true_in_colour_and_described():
    figure = Figure(figsize=(4, 2))  # without a layout engine, because those move a little with each drawing
    left, right = figure.subplots(1, 2)
    left.imshow(np.random.default_rng(0).random((200, 200)), cmap=HEAT)
    right.scatter(np.arange(20), np.arange(20), c=COLOURS, alpha=0.6)
    figure.set_label("noise and dots")
    (image,) = Parsed(render_page(title="t", facts={}, figures=[(figure, "heading", "caption")])).all("img")
    assert image["alt"] == "noise and dots"
    shown = Image.open(io.BytesIO(base64.b64decode(image["src"].split(",")[1])))
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    wanted = Image.open(buffer).convert("RGB")
    assert shown.size == wanted.size == (480, 240)
    error = np.abs(np.asarray(shown.convert("RGB")).astype(int) - np.asarray(wanted))
    assert error.max() <= 0.12 * 255
    assert error.mean() < 2


def test_a_figure_without_a_label_is_described_by_its_heading():
    (image,) = Parsed(render_page(title="t", facts={}, figures=[(picture(), "heading", "c")])).all("img")
    assert image["alt"] == "heading"


def test_page_reads_on_a_phone_in_the_dark_and_on_paper():
    page = full_page()
    assert "width=device-width" in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert Parsed(page).all("html") == [{"lang": "en"}]


def test_same_input_same_bytes():
    assert full_page() == full_page()


def test_page_is_written(tmp_path):
    path = tmp_path / "report.html"
    write_page(path, title="Ähnlich", facts={"rows": "5"}, tables=[], figures=[])
    parsed = Parsed(path.read_text(encoding="utf-8"))
    assert {"Ähnlich", "rows", "5"} <= set(parsed.text)
    assert not parsed.all("table")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_file_name_that_is_not_utf8_can_be_a_title(tmp_path):
    write_page(tmp_path / "report.html", title=b"caf\xe9.npy".decode("utf-8", "surrogateescape"), facts={})
    assert "caf?.npy" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_failure_leaves_the_old_page(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    figure = picture()
    monkeypatch.setattr(figure, "savefig", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_page(path, title="t", facts={}, figures=[(figure, "h", "c")])
    assert path.read_text() == "old"
    with pytest.raises(OutputError, match="cannot write"):
        write_page(tmp_path / "missing" / "report.html", title="t", facts={})


def test_a_table_has_a_cell_for_every_column():
    with pytest.raises(ValueError, match="row 1 has 1 cells for 2 columns"):
        PageTable("scores", ("method", "ACC"), (("a", "1"), ("b",)))
