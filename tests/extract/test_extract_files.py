"""Features into a file: three formats, stopped and resumed at any batch, bad items named or left out."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from prodsc import read
from prodsc.errors import InputError, OutputError, ParameterError
from prodsc.extract import SHORT_NAMES, Encoder, extract
from prodsc.extract import extraction as module

rng = np.random.default_rng(0)
PIXELS = rng.integers(0, 256, (23, 6, 5, 3), dtype=np.uint8)
EXPECTED = PIXELS.reshape(23, -1).astype(np.float32)[:, :7] / 3


def pixels(image):
    return torch.from_numpy(np.array(image, dtype=np.float32)).flatten()[:7] / 3


class Counting:
    """An encoder that shows the first pixels, remembers the sizes of its batches, and may stop before one of them."""

    def __init__(self, stop_before=None, error=KeyboardInterrupt):
        self.sizes, self.stop_before, self.error = [], stop_before, error
        self.encoder = Encoder("first pixels", pixels, self.embed)

    def embed(self, prepared):
        if len(self.sizes) == self.stop_before:
            raise self.error
        self.sizes.append(len(prepared))
        return torch.stack(prepared)


@pytest.fixture
def folder(tmp_path):
    """Ten images in two classes, numbers 3 and 8 damaged."""
    root = tmp_path / "images"
    for i in range(10):
        path = root / ("even" if i % 2 == 0 else "odd") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(PIXELS[i]).save(path)
        if i in (3, 8):
            path.write_bytes(path.read_bytes()[:60])
    return root


GOOD = [0, 2, 4, 6, 1, 5, 7, 9]  # in the order of the paths even/0.png ... odd/9.png


def left(path):
    return sorted(found.name for found in path.parent.iterdir() if ".part" in found.name)


# ---- what comes out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_each_format_gives_back_the_rows(suffix, dtype, tmp_path):
    np.savez(tmp_path / "in.npz", X=PIXELS, y=np.arange(23) % 4)
    out = tmp_path / f"out{suffix}"
    found = extract(tmp_path / "in.npz", Counting().encoder, out, batch_size=5, dtype=dtype)
    again = read(out, labels=tmp_path / "out.labels.txt" if suffix == ".npy" else None)
    assert again.X.dtype == dtype
    np.testing.assert_array_equal(again.X, EXPECTED.astype(dtype))
    np.testing.assert_array_equal(found.X, again.X)
    np.testing.assert_array_equal(again.y, np.arange(23) % 4)
    assert found.files[0] == out
    assert left(out) == []
    if suffix != ".npz":
        assert (tmp_path / "out.ids.txt").read_text().splitlines() == [str(i) for i in range(23)]


def test_in_memory_and_batch_size_do_not_matter():
    for size in (1, 4, 23, 100):
        counting = Counting()
        found = extract(PIXELS, counting.encoder, batch_size=size, workers=2)
        np.testing.assert_array_equal(found.X, EXPECTED)
        assert sum(counting.sizes) == 23
        assert max(counting.sizes) == min(size, 23)


def test_labels_from_folders_travel_with_the_rows(folder, tmp_path):
    found = extract(
        folder, Counting().encoder, tmp_path / "f.npz", labels_from_folders=True, skip_bad=True, batch_size=3
    )
    np.testing.assert_array_equal(found.X, EXPECTED[GOOD])
    with np.load(tmp_path / "f.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["X"], EXPECTED[GOOD])
        assert file["y"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
        assert file["classes"].tolist() == ["even", "odd"]
        assert file["ids"][4] == "odd/1.png"
    extract(folder, Counting().encoder, tmp_path / "g.npy", labels_from_folders=True, skip_bad=True)
    assert (tmp_path / "g.labels.txt").read_text().split() == ["even"] * 4 + ["odd"] * 4


def test_texts_from_a_list():
    encoder = Encoder("lengths", len, lambda sizes: torch.tensor(sizes)[:, None].float())
    assert extract(["a", "bbb"], encoder).X.tolist() == [[1.0], [3.0]]


# ---- bad items -------------------------------------------------------------------------------------------------------


def test_a_bad_image_is_an_error_and_what_came_before_is_kept(folder, tmp_path):
    out = tmp_path / "f.npy"
    with pytest.raises(InputError, match=r"8\.png cannot be read as an image .* --skip-bad"):
        extract(folder, Counting().encoder, out, batch_size=2)
    assert left(out) == ["f.npy.part", "f.npy.part.json"]
    counting = Counting()
    found = extract(folder, counting.encoder, out, batch_size=2, skip_bad=True)
    assert sum(counting.sizes) == 4  # of the good ones after the first four
    np.testing.assert_array_equal(np.load(out), EXPECTED[GOOD])
    assert list(found.skipped) == ["even/8.png", "odd/3.png"]
    assert [line.split("\t")[0] for line in (tmp_path / "f.skipped.txt").read_text().splitlines()] == [*found.skipped]
    assert (tmp_path / "f.ids.txt").read_text().splitlines() == found.ids


def test_nothing_readable(tmp_path):
    with pytest.raises(InputError, match="none of the 2 items could be read; the first: row 0"):
        extract([" ", ""], Counting().encoder, skip_bad=True)
    (tmp_path / "t.txt").write_text("\n\n")
    with pytest.raises(InputError, match="none of the 2 items"):
        extract(tmp_path / "t.txt", Counting().encoder, tmp_path / "t.npy", skip_bad=True)


@pytest.mark.parametrize(("value", "dtype"), [(1e5, "float16"), (np.nan, "float32")])
def test_features_that_are_not_finite_are_refused(value, dtype):
    encoder = Encoder("bad", pixels, lambda rows: torch.stack(rows) * torch.tensor([value] + [1.0] * 6))
    with pytest.raises(InputError, match=f"not finite in {dtype}"):
        extract(PIXELS + np.uint8(1), encoder, dtype=dtype)


# ---- stopped and resumed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batches", [1, 2, 4])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_stopped_and_resumed_gives_the_same(batches, suffix, tmp_path):
    out = tmp_path / f"f{suffix}"
    with pytest.raises(KeyboardInterrupt, match=f"stopped at {5 * batches} of 23; continue with the same command"):
        extract(PIXELS, Counting(stop_before=batches).encoder, out, batch_size=5)
    assert not out.exists()
    with (tmp_path / f"{out.name}.part").open("ab") as file:
        file.write(b"half a row")
    counting = Counting()
    extract(PIXELS, counting.encoder, out, batch_size=5)
    assert sum(counting.sizes) == 23 - 5 * batches
    np.testing.assert_array_equal(read(out).X, EXPECTED)
    assert left(out) == []


def test_stopped_before_the_first_batch_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        extract(PIXELS, Counting(stop_before=0).encoder, tmp_path / "f.npy")
    with pytest.raises(InputError, match="encodes texts"):
        extract(PIXELS, "minilm", tmp_path / "f.npy")
    assert list(tmp_path.iterdir()) == []


def test_a_kill_costs_only_what_came_after_the_last_save(tmp_path, monkeypatch):
    """No handler runs: the position on disk is that of the last timed save."""
    monkeypatch.setattr(module, "SECONDS", 0.0)
    monkeypatch.setattr(module.PartialFile, "leave", lambda part: None)
    with pytest.raises(RuntimeError):
        extract(PIXELS, Counting(3, RuntimeError).encoder, tmp_path / "f.npy", batch_size=5)
    assert json.loads((tmp_path / "f.npy.part.json").read_text())["done"] == 15
    counting = Counting()
    extract(PIXELS, counting.encoder, tmp_path / "f.npy", batch_size=5)
    assert counting.sizes == [5, 3]
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), EXPECTED)


def test_a_failure_while_finishing_needs_no_encoder_afterwards(tmp_path, monkeypatch):
    loaded = []
    monkeypatch.setitem(SHORT_NAMES, "pixels", (lambda request: loaded.append(1) or (pixels, torch.stack), ""))
    with monkeypatch.context() as broken:
        broken.setattr(module, "_write", lambda *_: (_ for _ in ()).throw(OutputError("full")))
        with pytest.raises(OutputError, match="full"):
            extract(PIXELS, "pixels", tmp_path / "f.npy")
    extract(PIXELS, "pixels", tmp_path / "f.npy")
    assert loaded == [1]
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), EXPECTED)


@pytest.mark.parametrize("change", ["items", "encoder", "dtype"])
def test_another_extraction_is_not_gone_on_with(change, tmp_path):
    out = tmp_path / "f.npy"
    with pytest.raises(KeyboardInterrupt):
        extract(PIXELS, Counting(1).encoder, out, batch_size=5)
    images = PIXELS[::-1] if change == "items" else PIXELS
    encoder = Encoder("other", pixels, torch.stack) if change == "encoder" else Counting().encoder
    dtype = "float16" if change == "dtype" else "float32"
    with pytest.raises(OutputError, match=rf"another extraction \(other {change}\); give --restart"):
        extract(images, encoder, out, dtype=dtype)
    found = extract(images, encoder, out, dtype=dtype, restart=True)
    np.testing.assert_array_equal(found.X, EXPECTED[:: -1 if change == "items" else 1].astype(dtype))


@pytest.mark.parametrize("damage", ["note", "rows"])
def test_a_damaged_part_is_one_sentence(damage, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        extract(PIXELS, Counting(2).encoder, tmp_path / "f.npy", batch_size=5)
    part = tmp_path / ("f.npy.part.json" if damage == "note" else "f.npy.part")
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(OutputError, match="--restart"):
        extract(PIXELS, Counting().encoder, tmp_path / "f.npy")


# ---- where it may go -------------------------------------------------------------------------------------------------


def test_an_existing_file_is_not_replaced_unasked(tmp_path):
    extract(PIXELS[:4], Counting().encoder, tmp_path / "f.npy")
    with pytest.raises(OutputError, match="--overwrite"):
        extract(PIXELS, Counting().encoder, tmp_path / "f.npy")
    assert len(extract(PIXELS, Counting().encoder, tmp_path / "f.npy", overwrite=True).X) == 23


def test_places_and_parameters_that_cannot_be(tmp_path):
    counting = Counting()
    with pytest.raises(OutputError, match="must end in one of"):
        extract(PIXELS, counting.encoder, tmp_path / "f.csv")
    with pytest.raises(OutputError, match="cannot write"):
        extract(PIXELS, counting.encoder, tmp_path / "nowhere" / "f.npy")
    with pytest.raises(ParameterError, match="dtype"):
        extract(PIXELS, counting.encoder, dtype="int8")
    with pytest.raises(ParameterError, match="batch_size"):
        extract(PIXELS, counting.encoder, batch_size=0)
    assert counting.sizes == []  # all of it before any work


def test_an_input_is_never_replaced(tmp_path):
    np.save(tmp_path / "images.npy", PIXELS)
    with pytest.raises(OutputError, match=r"images\.npy is an input of this command"):
        extract(tmp_path / "images.npy", Counting().encoder, tmp_path / "images.npy", overwrite=True)
    np.testing.assert_array_equal(np.load(tmp_path / "images.npy"), PIXELS)
