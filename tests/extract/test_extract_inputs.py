"""Every source gives named items that load one by one; what cannot be loaded is named in one sentence."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from prodsc.errors import InputError, ParameterError
from prodsc.extract import Preprocess, open_items
from prodsc.extract.preprocess import rgb

rng = np.random.default_rng(0)
PIXELS = rng.integers(0, 256, (5, 6, 7, 3), dtype=np.uint8)


def picture(path, pixels=PIXELS[0]):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "pets"
    for i, name in enumerate(("dogs/b.PNG", "cats/z/deep.png", "cats/a.bmp", "dogs/a.png")):
        picture(root / name, PIXELS[i])
    picture(root / "cats" / ".hidden.png")
    picture(root / ".cache" / "x.png")
    (root / "cats" / "notes.txt").write_text("no image")
    return root


def test_a_folder_is_searched_to_the_bottom_in_order(folder):
    items = open_items(folder)
    assert items.kind == "images"
    assert items.ids == ["cats/a.bmp", "cats/z/deep.png", "dogs/a.png", "dogs/b.PNG"]
    np.testing.assert_array_equal(np.asarray(items.load(1)), PIXELS[1])


def test_labels_are_the_names_of_the_first_folders(folder):
    items = open_items(folder, labels_from_folders=True)
    assert items.classes == ["cats", "dogs"]
    assert items.y.tolist() == [0, 0, 1, 1]
    picture(folder / "loose.png")
    with pytest.raises(InputError, match=r"loose\.png is in none"):
        open_items(folder, labels_from_folders=True)


def test_links_are_followed_once(folder, tmp_path):
    picture(tmp_path / "elsewhere" / "c.png")
    (folder / "birds").symlink_to(tmp_path / "elsewhere")
    (folder / "birds" / "back").symlink_to(folder)
    assert open_items(folder).ids.count("birds/c.png") == 1
    assert len(open_items(folder)) == 5


def test_the_fingerprint_follows_the_files(folder):
    before = open_items(folder).fingerprint
    assert open_items(folder).fingerprint == before
    picture(folder / "dogs" / "a.png", rng.integers(0, 256, (9, 9, 3), dtype=np.uint8))
    assert open_items(folder).fingerprint != before


def test_a_damaged_image_is_named(folder):
    whole = (folder / "dogs" / "a.png").read_bytes()
    (folder / "dogs" / "a.png").write_bytes(whole[: len(whole) // 2])
    (folder / "dogs" / "b.PNG").write_text("not an image")
    (folder / "cats" / "a.bmp").unlink()
    (folder / "cats" / "a.bmp").symlink_to("nowhere")
    items = open_items(folder)
    for i, name in ((0, "a.bmp"), (2, "a.png"), (3, "b.PNG")):
        with pytest.raises(InputError, match=f"{name} cannot be read as an image"):
            items.load(i)


@pytest.mark.parametrize("layout", ["last", "second", "grey", "grey last"])
def test_arrays_of_images(layout, tmp_path):
    X = {
        "last": PIXELS,
        "second": PIXELS.transpose(0, 3, 1, 2),
        "grey": PIXELS[..., 0],
        "grey last": PIXELS[..., :1],
    }[layout]
    np.savez(tmp_path / "images.npz", X=X, y=np.array([3, 3, 5, 5, 9]))
    items = open_items(tmp_path / "images.npz")
    assert items.ids == ["0", "1", "2", "3", "4"]
    assert items.y.tolist() == [0, 0, 1, 1, 2]
    expected = PIXELS if "grey" not in layout else np.repeat(PIXELS[..., :1], 3, axis=-1)
    for i in range(5):
        np.testing.assert_array_equal(np.asarray(rgb(items.load(i))), expected[i])
    assert len(open_items(X)) == 5


@pytest.mark.parametrize("X", [PIXELS / 255, PIXELS[0, 0], PIXELS[..., :2], np.zeros((4, 8, 8, 8), np.uint8)])
def test_what_is_not_images_is_refused(X):
    with pytest.raises(InputError, match="shape"):
        open_items(X)


def test_a_data_set_by_name(shared_data, monkeypatch, tmp_path):
    monkeypatch.setenv("PRODSC_DATA", str(shared_data("orl.npz").parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    items = open_items("orl")
    assert len(items) == 400
    assert items.load(0).size == (32, 32)
    assert len(np.unique(items.y)) == 40


def test_an_empty_folder_and_a_missing_path(tmp_path):
    with pytest.raises(InputError, match="holds no images"):
        open_items(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        open_items(tmp_path / "nothing.npy")
    with pytest.raises(InputError, match="does not exist"):
        open_items(tmp_path / "nothing.txt")


# ---- texts -----------------------------------------------------------------------------------------------------------


def test_one_text_per_line(tmp_path):
    (tmp_path / "t.txt").write_bytes("\ufeffeins\r\nzwei, drei\r\n\r\nvier\r\n".encode())
    items = open_items(tmp_path / "t.txt")
    assert items.kind == "texts"
    assert len(items) == 4
    assert [items.load(i) for i in (0, 1, 3)] == ["eins", "zwei, drei", "vier"]
    with pytest.raises(InputError, match=r"row 2 of .*t\.txt is blank"):
        items.load(2)
    (tmp_path / "t.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match="UTF-8"):
        open_items(tmp_path / "t.txt")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_a_column_of_a_table(suffix, tmp_path):
    table = pd.DataFrame({"n": [1, 2], "body": ['say "hi",\nthen go', "x"], "title": ["NA", "b"]})
    path = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    items = open_items(path, column="body")
    assert [items.load(i) for i in range(2)] == ['say "hi",\nthen go', "x"]
    assert open_items(path, column="title").load(0) == "NA"
    with pytest.raises(InputError, match="did you mean 'body'"):
        open_items(path, column="bodi")
    with pytest.raises(InputError, match=r"2 columns of text \(body, title\)"):
        open_items(path)


def test_the_only_column_of_text_needs_no_name(tmp_path):
    (tmp_path / "t.csv").write_text("text\nhello there\n7\n")
    assert open_items(tmp_path / "t.csv").load(1) == "7"
    (tmp_path / "t.csv").write_text("text,n\n7,1\n8,2\n")
    assert open_items(tmp_path / "t.csv", column="text").load(0) == "7"


def test_options_that_do_not_fit(tmp_path, folder):
    (tmp_path / "t.txt").write_text("a\n")
    with pytest.raises(ParameterError, match="column"):
        open_items(folder, column="body")
    with pytest.raises(ParameterError, match="labels from folders"):
        open_items(tmp_path / "t.txt", labels_from_folders=True)


# ---- preprocessing ---------------------------------------------------------------------------------------------------


def _reference_bytes(image, size, resize):
    """Shorter side to `resize`, centre `size`, as written down in words."""
    width, height = image.size
    scale = resize / min(width, height)
    image = image.resize((int(width * scale + 1e-9), int(height * scale + 1e-9)), Image.Resampling.BICUBIC)
    left, top = round((image.width - size) / 2), round((image.height - size) / 2)
    return np.asarray(image.crop((left, top, left + size, top + size)))


@pytest.mark.parametrize("shape", [(40, 60), (61, 40), (40, 40), (20, 33)])
def test_shorter_side_centre_normalise(shape):
    image = Image.fromarray(rng.integers(0, 256, (*shape, 3), dtype=np.uint8))
    found = Preprocess((0.5, 0.4, 0.3), (0.2, 0.3, 0.4), size=24, resize=32)(image)
    x = _reference_bytes(image, 24, 32) / 255
    expected = torch.from_numpy((x - [0.5, 0.4, 0.3]) / [0.2, 0.3, 0.4]).permute(2, 0, 1)
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-5)


def test_squash_sees_the_whole_image():
    image = Image.fromarray(np.repeat(np.arange(0, 256, 4, dtype=np.uint8)[None, :, None], 16, 0).repeat(3, 2))
    squashed = Preprocess((0, 0, 0), (1, 1, 1), 16, 16, squash=True)(image)
    cut = Preprocess((0, 0, 0), (1, 1, 1), 16, 16)(image)
    assert squashed.shape == cut.shape == (3, 16, 16)
    assert squashed[0, 0, 0] < 0.1 < cut[0, 0, 0]


def test_without_rounding_differs_only_by_the_rounding():
    soft = Image.fromarray(rng.integers(100, 150, (10, 13, 3), dtype=np.uint8))  # nothing to clip at 0 and 255
    rounded = Preprocess((0, 0, 0), (1, 1, 1), 32, 32)(soft) * 255
    exact = Preprocess((0, 0, 0), (1, 1, 1), 32, 32, rounds=False)(soft) * 255
    assert 0 < (rounded - exact).abs().max() < 1.6  # Pillow rounds after each direction
    harsh = Image.fromarray((255 * rng.integers(0, 2, (10, 13, 3))).astype(np.uint8))
    exact = Preprocess((0, 0, 0), (1, 1, 1), 32, 32, rounds=False)(harsh)
    assert exact.min() == 0
    assert exact.max() == 1


def test_images_of_other_modes_become_rgb():
    deep = Image.fromarray(np.full((4, 4), 128 * 256, np.uint16))
    assert np.asarray(rgb(deep)).tolist() == [[[128] * 3] * 4] * 4
    palette = Image.new("P", (2, 2), 1)
    palette.putpalette([0, 0, 0, 9, 8, 7])
    palette.info["transparency"] = b"\x00\x7f"
    assert rgb(palette).getpixel((0, 0)) == (9, 8, 7)
    assert rgb(Image.new("L", (2, 2), 5)).getpixel((1, 1)) == (5, 5, 5)
