"""The page of a table with texts: names, search, colours by columns, outliers, renaming that is read back."""

import json

import numpy as np
import pandas as pd
import pytest
from system_chromium import Heard, chromium, find_browser, open_page, wait_for_paint

from conftest import SMALL
from prodsc import PRODSC, open_source


@pytest.fixture(scope="module")
def browser():
    path = find_browser()
    if path is None:
        pytest.skip("no Chromium here: apt install chromium, or name one with PRODSC_BROWSER")
    with chromium(path) as running:
        yield running


@pytest.fixture(scope="module")
def fitted(blobs, tmp_path_factory):
    """A model of a table, and its page."""
    X, y = blobs
    table = pd.DataFrame(X.astype(np.float32), columns=["age", "income", *"abcdefghij"])
    table["key"] = [f"K{i:03d}" for i in range(150)]
    table["note"] = np.array(["late parcel", "lost password", "wet shoe"])[y]
    table["town"] = np.where(np.arange(150) % 2, "Graz", "Linz")
    source = open_source(table, id="key", text="note", drop="town")
    model = PRODSC.from_flat(n_clusters=3, **SMALL).fit(source)
    return model, model.report(source).save(tmp_path_factory.mktemp("named") / "page.html")


@pytest.fixture
def page(browser, fitted):
    heard = Heard()
    opened = open_page(browser, fitted[1], width=1300, height=1000, heard=heard)
    yield opened
    assert heard.complaints == heard.requests == []
    opened.close()


def choose(page, mode):
    page.evaluate(f"colour.value = {json.dumps(mode)}; colour.dispatchEvent(new Event('change'))")
    wait_for_paint(page)


def legend(page):
    return page.evaluate("document.getElementById('legend').textContent")


def test_words_of_texts_and_columns_are_found(page):
    page.fill("#search", "password")
    assert "lost password" in page.evaluate("matches.querySelector('button').textContent")
    page.evaluate("[...matches.querySelectorAll('button')].at(-1).click()")
    assert page.evaluate("report.state().picked") == 50
    page.fill("#search", "graz shoe")  # every word, wherever it is in the row
    assert "Select all 15 on" in page.evaluate("matches.textContent")
    page.fill("#search", "nowhere")
    assert "No row on the map has these words." in page.evaluate("matches.textContent")


def test_the_map_is_coloured_by_any_column(page):
    modes = page.evaluate("Object.fromEntries([...colour.options].map((o) => [o.textContent, o.value]))")
    assert {"cluster", "confidence", "outlier score", "town", "age", "income"} <= set(modes)
    choose(page, modes["town"])
    assert legend(page) in ("GrazLinz", "LinzGraz")
    choose(page, modes["age"])
    assert "median" in legend(page)
    choose(page, modes["outlier score"])
    assert legend(page) == "outlierusual"


def test_the_slider_leaves_the_outliers(page):
    page.evaluate("outliers.value = 90; outliers.dispatchEvent(new Event('input'))")
    words = page.evaluate("document.getElementById('outliers-shown').textContent")
    assert 10 <= int(words.split()[0]) <= 20  # a tenth of 150


def test_a_new_name_is_everywhere_and_is_read_back(page, fitted, tmp_path):
    page.evaluate("document.querySelector('[data-rename=\"1\"]').click()")
    page.keyboard.insert_text("Parcels that come late")
    page.keyboard.press("Enter")
    assert "1: Parcels that come late" in legend(page)
    assert page.evaluate("document.querySelector('#cluster-1 h3').textContent").strip() == "Parcels that come late"
    with page.expect_download() as saved:
        page.evaluate("document.getElementById('save-names').click()")
    saved.value.save_as(tmp_path / "names.json")
    model = fitted[0]
    assert model.rename_clusters(tmp_path / "names.json").cluster_names_[1] == "Parcels that come late"


def test_the_hover_shows_the_row_s_own_values(page):
    page.evaluate("search.focus()")
    page.keyboard.insert_text("K007")
    page.keyboard.press("Enter")
    tip = page.evaluate("tip.textContent")
    for word in ("K007", "late parcel", "town", "Graz", "income"):
        assert word in tip
