"""Images by cluster: each in its place, hostile names harmless, folders that are not ours untouched."""

import csv
import os

import numpy as np
import pytest
from PIL import Image

from prodsc import export
from prodsc.errors import InputError, OutputError
from prodsc.export.images import safe_name

LABELS = np.array([0, 1, 0, 10])
SURE = np.array([1.0, 0.5, 0.25, 0.75])


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    for i, name in enumerate(["a.png", "cats/b b.PNG", "cats/c..png", "z<script>\n.jpeg"]):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (2, 2), 60 * i).save(root / name, format="png")
    return root


def index(out):
    with (out / "index.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image)


def test_images_are_linked_by_cluster_with_an_index(tmp_path, photos):
    out = export.folders(tmp_path / "out", photos, LABELS, SURE)
    assert sorted(p.name for p in out.iterdir()) == ["cluster_00", "cluster_01", "cluster_10", "index.csv"]
    rows = index(out)
    assert [row["id"] for row in rows] == ["a.png", "cats/b b.PNG", "cats/c..png", "z<script>\\n.jpeg"]
    for row, label, sure in zip(rows, LABELS, SURE, strict=True):
        path = out / row["file"]
        assert path.is_symlink()
        assert path.resolve().is_relative_to(photos)
        assert path.parent == out / f"cluster_{label:02d}"
        assert float(row["confidence"]) == sure
    assert [pixels(out / row["file"])[0, 0] for row in rows] == [0, 60, 120, 180]


def test_copies_are_files_of_their_own(tmp_path, photos):
    out = export.folders(tmp_path / "out", photos, LABELS, copy=True)
    assert not any(path.is_symlink() for path in out.rglob("*"))
    before = (photos / "a.png").read_bytes()
    (out / index(out)[0]["file"]).write_bytes(b"changed")
    assert (photos / "a.png").read_bytes() == before


def test_ids_say_which_image_is_which_row(tmp_path, photos):
    out = export.folders(tmp_path / "out", photos, [0, 1], ids=["cats/b b.PNG", "a.png"])  # two of the four
    assert [os.readlink(out / row["file"]).rsplit("/", 1)[1] for row in index(out)] == ["b b.PNG", "a.png"]
    with pytest.raises(InputError, match=r"no image \.\./secret\.png \(1 of 2 are missing\)"):
        export.folders(tmp_path / "no", photos, [0, 1], ids=["a.png", "../secret.png"])
    with pytest.raises(InputError, match="4 images for 2 rows"):
        export.folders(tmp_path / "no", photos, [0, 1])
    assert not (tmp_path / "no").exists()


HOSTILE = [
    "../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a\0b",
    "con",
    "x" * 300,
    "a/b\\c:d*?",
    "~",
    "\n",
    "é ü",
    "-rf",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_never_leads_anywhere(name):
    safe = safe_name(name)
    assert all(c.isascii() and (c.isalnum() or c in "-_") for c in safe)
    assert len(safe) <= 80


def test_hostile_ids_of_an_array_stay_inside(tmp_path):
    images = np.arange(len(HOSTILE) * 12, dtype=np.uint8).reshape(-1, 2, 2, 3)
    out = export.folders(tmp_path / "deep" / "out", images, np.zeros(len(HOSTILE), dtype=int), ids=HOSTILE)
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == len(HOSTILE) + 1
    assert all(path.parent in (out, out / "cluster_0") for path in made)
    written = [f"'{name}" if name[:1] in ("=", "-", "+", "@") and len(name) > 1 else name for name in HOSTILE]
    assert [row["id"] for row in index(out)] == written  # an apostrophe before what a spreadsheet would run
    np.testing.assert_array_equal(pixels(out / index(out)[3]["file"]), images[3])


@pytest.mark.parametrize(
    ("shape", "size"),
    [((3, 4), (3, 4)), ((3, 4, 1), (3, 4)), ((3, 4, 3), (3, 4, 3)), ((1, 3, 4), (3, 4)), ((3, 5, 4), (5, 4, 3))],
    ids=str,
)
def test_numbers_become_images(tmp_path, shape, size):
    X = np.linspace(-1, 2, 2 * int(np.prod(shape))).reshape(2, *shape)
    out = export.folders(tmp_path / "out", X, [0, 0])
    first, second = (pixels(out / "cluster_0" / f"00000{i}.png") for i in (0, 1))
    assert first.shape == size
    assert (first.min(), second.max()) == (0, 255)


def test_rows_are_not_images(tmp_path):
    with pytest.raises(InputError, match="rows, not images"):
        export.folders(tmp_path / "out", np.ones((2, 3)), [0, 0])
    with pytest.raises(InputError, match="1 images for 2 labels"):
        export.folders(tmp_path / "out", np.ones((1, 3, 3)), [0, 0])
    assert not any(tmp_path.iterdir())


def test_only_an_earlier_export_is_ever_replaced(tmp_path, photos):
    out = export.folders(tmp_path / "out", photos, LABELS)
    with pytest.raises(OutputError, match=r"not empty.*--force"):
        export.folders(out, photos, LABELS)
    export.folders(out, photos, LABELS[::-1].copy(), force=True)
    assert [int(row["cluster"]) for row in index(out)] == LABELS[::-1].tolist()
    assert (photos / "a.png").exists()  # links went, not what they point to
    for strange in (photos, tmp_path):
        with pytest.raises(OutputError, match="not made by an export alone"):
            export.folders(strange, photos, LABELS, force=True)
    (tmp_path / "link").symlink_to(photos)
    with pytest.raises(OutputError, match="a file or a link"):
        export.folders(tmp_path / "link", photos, LABELS, force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "out", "photos"]


def test_a_failure_half_way_leaves_the_old_export(tmp_path, photos, monkeypatch):
    out = export.folders(tmp_path / "out", photos, LABELS)
    before = index(out)
    calls = []

    def full(source, target):
        calls.append(target)
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        os.symlink(source, target)

    monkeypatch.setattr("prodsc.export.images._link", full)
    with pytest.raises(OutputError, match="No space left"):
        export.folders(out, photos, LABELS, force=True)
    assert index(out) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "photos"]


@pytest.mark.parametrize("name", ["cluster_00/notes.txt", "cluster_00/more/photo.png", "cluster_99/a.png"])
def test_a_file_of_the_user_in_an_export_is_never_deleted(tmp_path, photos, name):
    out = export.folders(tmp_path / "out", photos, LABELS)
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("mine")
    with pytest.raises(OutputError, match=r"index\.csv does not list cluster"):
        export.folders(out, photos, LABELS, force=True)
    assert (out / name).read_text() == "mine"


def test_copies_do_not_follow_links_out_of_the_folder(tmp_path, photos):
    (tmp_path / "secret.png").write_bytes(b"secret")
    (photos / "a.png").unlink()
    (photos / "a.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(InputError, match=r"a\.png is a link out of .*, which --copy"):
        export.folders(tmp_path / "out", photos, LABELS, copy=True)
    assert not (tmp_path / "out").exists()
    (photos / "a.png").unlink()
    (photos / "a.png").symlink_to(photos / "cats" / "c..png")
    export.folders(tmp_path / "out", photos, LABELS, copy=True)  # a link inside the folder is followed
