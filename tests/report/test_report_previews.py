"""What a row looks like: pictures into sheets within a budget, ids, texts and columns from wherever they are."""

import base64
import io
import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from prodsc import PRODSC
from prodsc.errors import InputError
from prodsc.report.fit_figures import (
    best_weights,
    confusion,
    eigengap,
    evaluations,
    label_changes,
    label_convergence,
    margin,
    suggested_k,
)
from prodsc.report.fit_page import about_k
from prodsc.report.map_data import PageRows, map_data, packed, unit_square
from prodsc.report.previews import PREVIEW_LIMITS, RowPreviews, make_sprites, open_previews, row_images, short
from prodsc.report.style import COLOURS_ON_DARK
from prodsc.sources.door import open_source


def unpacked(array):
    kinds = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "f32": np.float32}
    return np.frombuffer(base64.b64decode(array["data"]), kinds[array["kind"]])


def test_a_long_name_of_a_row_is_cut_on_the_page():
    assert len(RowPreviews(["x" * 10**6]).name(0)) == PREVIEW_LIMITS.text_length


def test_a_sheet_holds_each_picture_in_its_place():
    X = np.arange(40, dtype=np.uint8)[:, None, None] * np.ones((40, 6, 4), np.uint8) * 6
    made = make_sprites(row_images(X), first=[7, 3, 7], n=40)
    assert made.rows[:2] == [7, 3]
    assert sorted(made.rows) == list(range(40))
    assert made.tile == (4, 6)
    ((kind, content),) = made.sheets
    sheet = np.asarray(Image.open(io.BytesIO(content)))
    assert kind == "image/png"
    for place, row in enumerate(made.rows):
        x, y = place % PREVIEW_LIMITS.per_line * 4, place // PREVIEW_LIMITS.per_line * 6
        assert (sheet[y : y + 6, x : x + 4] == row * 6).all()


def test_thumbnails_stop_at_the_budget_and_the_page_says_so():
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (2 * PREVIEW_LIMITS.per_sheet + 10, 8, 8, 3), dtype=np.uint8)
    one = len(make_sprites(row_images(noise), [], PREVIEW_LIMITS.per_sheet).sheets[0][1])
    made = make_sprites(row_images(noise), first=[2050], n=len(noise), budget=int(1.5 * one))
    assert len(made.sheets) == 1
    assert len(made.rows) == PREVIEW_LIMITS.per_sheet
    assert made.rows[0] == 2050  # what is needed comes first
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "prodsc.report.map_data.make_sprites", lambda image, first, n: make_sprites(image, first, n, budget=1)
        )
        n = len(noise)
        zeros = np.zeros(n, dtype=np.intp)
        shown = PageRows(
            np.arange(n), rng.random((n, 2)), zeros, rng.random(n), zeros, [n], RowPreviews(image=row_images(noise))
        )
        _, notes = map_data(shown, [])
    assert notes == ["Thumbnails are shown for 1,024 of 2,058 rows, to keep this file small."]


@pytest.mark.parametrize(
    ("X", "shape", "size"),
    [
        (np.zeros((3, 12)), (3, 4), (4, 3)),
        (np.zeros((3, 5, 4), np.uint8), None, (4, 5)),
        (np.zeros((3, 3, 5, 4), np.float32), None, (4, 5)),
        (np.zeros((3, 5, 4, 3), np.float32), None, (4, 5)),
        (np.zeros((3, 5, 4, 1), np.uint8), None, (4, 5)),
    ],
    ids=["flat", "grey", "channels first", "channels last", "one channel"],
)
def test_rows_as_pictures(X, shape, size):
    assert row_images(X, shape)(1).size == size


def test_numbers_are_spread_from_black_to_white_and_vectors_are_no_pictures():
    X = np.array([[[0.0, 16.0]], [[8.0, 4.0]]])
    assert np.asarray(row_images(X)(0)).tolist() == [[0, 255]]
    assert np.asarray(row_images(X)(1)).tolist() == [[127, 63]]
    with pytest.raises(InputError, match="no images"):
        row_images(np.zeros((3, 4)))


@pytest.fixture
def files(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    np.savez(tmp_path / "features.npz", X=X, ids=np.array(["c", "a", "d", "b"]), weight=np.array([5, 6, 7, 8]))
    np.savez(tmp_path / "plain.npz", X=X)
    (tmp_path / "images").mkdir()
    for shade, name in enumerate("abcde"):
        Image.new("L", (6, 6), shade * 50).save(tmp_path / "images" / f"{name}.png")
    (tmp_path / "texts.txt").write_text("one\n\nthree\nfour\n")
    return tmp_path


def test_images_are_matched_by_name_where_the_file_has_names(files):
    X = np.load(files / "features.npz")["X"]
    np.savez(files / "named.npz", X=X, ids=np.array(["c.png", "a.png", "d.png", "b.png"]))
    previews = open_previews(open_source(files / "named.npz"), images=str(files / "images"))  # five images, four rows
    assert previews.ids == ["c.png", "a.png", "d.png", "b.png"]
    assert [previews.image(i).getpixel((0, 0)) for i in range(4)] == [100, 0, 150, 50]
    with pytest.raises(InputError, match="5 images for 4 rows"):
        open_previews(open_source(files / "plain.npz"), images=str(files / "images"))
    (files / "images" / "e.png").unlink()
    previews = open_previews(open_source(files / "plain.npz"), images=str(files / "images"))
    assert previews.name(1) == "b.png"
    assert previews.image(1).getpixel((0, 0)) == 50


def test_texts_and_columns(files):
    source = replace(open_source(files / "features.npz"), columns=["p", "q", "r"])
    previews = open_previews(source, texts=str(files / "texts.txt"), columns=["q", "2", "weight"])
    assert previews.texts == ["one", "", "three", "four"]
    assert [values.tolist() for values in previews.columns.values()] == [[1, 4, 7, 10], [2, 5, 8, 11], [5, 6, 7, 8]]
    with pytest.raises(InputError, match=r"no column 'wait'"):
        open_previews(source, columns=["wait"])
    with pytest.raises(InputError, match="holds texts"):
        open_previews(source, images=str(files / "texts.txt"))
    with pytest.raises(InputError, match="holds images"):
        open_previews(source, texts=str(files / "images"))
    with pytest.raises(InputError, match="4 rows, 2 entries"):
        RowPreviews(ids=["a", "b"]).check(4)


def test_digits_are_pictures_by_name():
    previews = open_previews(open_source("digits"))
    assert previews.image(0).size == (8, 8)
    assert open_previews(open_source(open_source("digits").X), images="digits").image(5).size == (8, 8)


def test_the_map_s_data_come_back_as_they_were():
    rng = np.random.default_rng(0)
    rows = np.array([3, 5, 8])
    previews = RowPreviews(
        ids=[f"id {i}" for i in range(10)],
        texts=["x" * 9999] * 10,
        columns={"c": np.arange(10.0), "w": np.array(["ä"] * 10)},
    )
    labels, second = np.array([0, 2, 2]), np.array([1, 0, 1])
    places = rng.standard_normal((3, 2)) * [5, 1]
    shown = PageRows(
        rows, places, labels, np.array([1, 0.5, 0]), second, [4, 0, 6], previews, np.array([1, 0, 1]), ["no", "yes"]
    )
    data, notes = map_data(shown, [0])
    json.dumps(data, allow_nan=False)
    assert unpacked(data["label"]).tolist() == [0, 2, 2]
    assert unpacked(data["confidence"]).tolist() == [255, 128, 0]
    assert unpacked(data["rows"]).tolist() == [3, 5, 8]
    assert data["ids"] == ["id 3", "id 5", "id 8"]
    assert data["texts"][0] == short("x" * 9999, 1000)
    assert len(data["texts"][0]) == 1000
    assert unpacked(data["columns"][0]["numbers"]).tolist() == [3, 5, 8]
    assert data["columns"][1]["words"] == ["ä"] * 3
    assert unpacked(data["centres"]).reshape(3, 2)[1].tolist() == [-1, -1]  # a cluster without rows
    back = np.stack([unpacked(data["x"]), unpacked(data["y"])], axis=1) / 65535
    np.testing.assert_allclose(back, unit_square(places), atol=1e-4)
    spread = unit_square(places).max(0) - unit_square(places).min(0)
    assert spread.max() == pytest.approx(0.96)
    assert spread[1] / spread[0] == pytest.approx(np.ptp(places[:, 1]) / np.ptp(places[:, 0]))  # proportions are kept
    assert notes == []


def test_wide_labels_need_two_bytes():
    assert packed(np.array([1, 300]), "u16")["data"] == base64.b64encode(b"\x01\x00\x2c\x01").decode()


def test_eigengap_says_what_it_says():
    values = np.array([0, 0.01, 0.02, 0.5, 0.52, 0.55])
    assert suggested_k(values) == 3
    assert "supports 3 clusters" in about_k(values, 3)
    assert "3 clusters would be more natural" in about_k(values, 4)
    assert "4 clusters are well supported" in about_k(np.array([0, 0.1, 0.3, 0.32, 0.5, 0.51]), 4)
    assert "widest gap after 3" in eigengap(values, 4).get_label()
    assert suggested_k([0.0, 0.9, 0.91]) == 2  # the gap after the first is there in any graph


def test_margin_over_time_goes_on_from_phase_to_phase():
    nan = float("nan")
    history = {"phase": ["warm-up", "warm-up", "joint", "joint"], "step": [1, 2, 1, 2], "margin": [nan, nan, 2.0, 3.0]}
    figure = margin(history | {"effective_rank": [nan, nan, 5.0, 4.0]})
    assert list(figure.axes[0].lines[0].get_xdata()) == [3, 4]
    assert "from 2 to 3" in figure.get_label()
    assert len(margin(history).axes) == 1  # without a rank, one panel
    assert margin(history | {"margin": [nan] * 4}) is None


def test_confusion_has_matched_pairs_on_its_diagonal():
    counts = np.array([[1, 9, 0], [8, 0, 2], [0, 0, 5], [1, 1, 1]])
    figure = confusion(counts, np.array([1, 0, 2, -1]), ["a", "b", "$c$"])
    shown = figure.axes[0].images[0].get_array()
    np.testing.assert_allclose(np.diag(shown[:3]), [0.9, 0.8, 1.0])
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["b", "a", "$c$"]
    assert "22 rows on the diagonal" in figure.get_label()


def test_twenty_colours_can_be_told_apart_on_a_dark_screen():
    from test_report_style import SIGHT, _reference_lab

    assert len(set(COLOURS_ON_DARK)) == 20
    assert _reference_lab(COLOURS_ON_DARK, SIGHT["normal"])[:, 0].min() > 42
    for sight in SIGHT.values():
        assert min(np.linalg.norm(a - b) for a, b in combinations(_reference_lab(COLOURS_ON_DARK, sight), 2)) > 13


def test_which_state_was_kept_is_told_as_training_kept_it():
    nan = float("nan")
    history = {"phase": ["joint"] * 5, "step": [20, 40, 41, 60, 80]}
    seen = evaluations(history | {"agreement": [0.5, 0.9, nan, 0.6, 0.95], "perplexity": [2.0, 1.0, nan, 0.8, 0.7]})
    assert (seen.steps[seen.kept], seen.ended) == (40, True)  # at 80 clusters were being split
    assert "joint step 40 were kept" in seen.summary()
    assert "ended at step 80" in best_weights(seen).get_label()
    sparse = evaluations(history | {"agreement": [0.5, 0.9, nan, 0.8, 0.95], "perplexity": [0.6, 0.6, nan, 0.6, 0.6]})
    assert (sparse.steps[sparse.kept], sparse.ended) == (80, False)  # it began there: nothing is being split
    luck = evaluations(history | {"agreement": [0.7, 0.9, nan, 0.8, 0.8], "perplexity": [2.0, 1.0, nan, 1.0, 1.0]})
    assert luck.steps[luck.kept] == 80, "means of .7 .8 .8 .833"
    assert evaluations(history) is None
    assert evaluations(history | {"agreement": [nan] * 5, "perplexity": [nan] * 5}) is None


def test_when_labels_settled_is_told_as_training_saw_it():
    nan = float("nan")
    history = {"phase": ["joint"] * 5, "step": [20, 40, 60, 80, 100], "stability": [nan, 0.5, 0.991, 0.995, 0.999]}
    seen = label_changes(history)
    assert seen.steps.tolist() == [40, 60, 80, 100]
    assert seen.ended
    assert "ended at step 100" in label_convergence(seen).get_label()
    still = label_changes(history | {"stability": [nan, 0.5, 0.991, 0.98, 0.999]})
    assert not still.ended
    assert "last step, 100" in still.summary()
    assert label_changes({"step": [1]}) is None
    assert label_changes(history | {"stability": [nan] * 5}) is None


def test_the_picture_agrees_with_the_fit(blobs):
    model = PRODSC.from_flat(3, start="warm-up", epochs=60, hidden_size=32, n_components=8).fit(blobs[0])
    seen = evaluations(model.history_)
    again = PRODSC.from_flat(3, start="warm-up", epochs=int(seen.steps[seen.kept]), hidden_size=32, n_components=8).fit(
        blobs[0]
    )
    np.testing.assert_allclose(model.transform(blobs[0]), again.transform(blobs[0]), atol=1e-5)
