"""Photos and tables of texts as people have them."""

import numpy as np
import pytest
import torch
from PIL import Image

from prodsc.errors import InputError, MissingExtraError
from prodsc.extract.encoders import Encoder
from prodsc.extract.extraction import extract
from prodsc.extract.inputs import open_items
from prodsc.extract.preprocess import rgb
from prodsc.sources.door import open_source


def encoder():
    """Mean colour of an image, or the length of a text; counts how often it is asked."""
    asked = []

    def embed(items):
        asked.append(len(items))
        return torch.stack([torch.as_tensor(item) for item in items])

    def prepare(item):
        if isinstance(item, str):
            return [float(len(item)), 1.0]
        return np.asarray(rgb(item), dtype=np.float32).mean((0, 1))

    made = Encoder("mean colour", prepare, embed)
    return made, asked


def test_photos_are_turned_as_the_camera_was_held(tmp_path):
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, :4] = [255, 0, 0]
    exif = Image.Exif()
    exif[0x0112] = 6  # held upright: turn by 90 degrees
    Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    turned = np.asarray(open_items(tmp_path).load(0))
    assert turned.shape == (8, 4, 3)
    np.testing.assert_array_equal(turned[0, 0], [255, 0, 0])
    np.testing.assert_array_equal(turned[-1, 0], [0, 0, 0])


def test_sixteen_bits_and_cmyk_keep_their_brightness(tmp_path):
    grey = np.full((4, 4), 0x8000, np.uint16)
    Image.fromarray(grey).save(tmp_path / "16.png")
    Image.fromarray(grey.astype(np.int32)).save(tmp_path / "32.tiff")
    Image.fromarray(np.linspace(-3, 5, 16, dtype=np.float32).reshape(4, 4)).save(tmp_path / "float.tiff")
    Image.new("CMYK", (4, 4), (0, 255, 255, 0)).save(tmp_path / "cmyk.jpg")
    items = open_items(tmp_path)
    means = {name: np.asarray(rgb(items.load(i))).reshape(-1, 3).mean(0) for i, name in enumerate(items.ids)}
    np.testing.assert_allclose(means["16.png"], 128, atol=1)
    np.testing.assert_allclose(means["32.tiff"], 128, atol=1)
    np.testing.assert_allclose(means["float.tiff"], 127, atol=1)
    assert means["cmyk.jpg"][0] > 230
    assert means["cmyk.jpg"][1] < 40


def test_a_photo_of_a_telephone_names_its_extra(tmp_path):
    (tmp_path / "IMG_1.heic").write_bytes(b"no matter")
    try:
        import pillow_heif  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"pip install 'prodsc\[heic\]'"):
            open_items(tmp_path).load(0)
    else:
        assert "cannot be read as an image" in open_items(tmp_path).problem(0)


def test_files_are_checked_before_the_first_batch(tmp_path):
    for i in range(6):
        Image.new("RGB", (4, 4), (i, 0, 0)).save(tmp_path / f"{i}.png")
    (tmp_path / "7.png").write_bytes(b"not an image")
    (tmp_path / "8.png").write_bytes(b"")
    made, asked = encoder()
    with pytest.raises(InputError, match=r"2 of 8 images cannot be read: .*7\.png .*8\.png .* --skip-bad"):
        extract(tmp_path, made, batch_size=2)
    assert asked == []
    assert len(extract(tmp_path, made, skip_bad=True).ids) == 6


def test_a_table_of_texts_keeps_its_ids_and_texts(tmp_path):
    table = "ticket,title,body\nT1,Refund,money back\nT2,Login,\nT3,Late,parcel\n"
    (tmp_path / "tickets.csv").write_text(table)
    made, _ = encoder()
    with pytest.raises(InputError, match=r"2 columns of text .title, body.; say which with --text NAME"):
        extract(tmp_path / "tickets.csv", made, id="ticket")
    seen = []
    out = tmp_path / "tickets.npz"
    extract(tmp_path / "tickets.csv", made, out, column="title,body", id="ticket", progress=lambda *n: seen.append(n))
    assert seen[0] == (0, 3)
    source = open_source(out)
    assert source.ids == ["T1", "T2", "T3"]
    assert source.texts == ["Refund money back", "Login", "Late parcel"]
    with pytest.raises(InputError, match=r"--id: .* has no column 'tickt'; did you mean 'ticket'"):
        extract(tmp_path / "tickets.csv", made, column="title", id="tickt")


def test_the_page_of_extracted_photos_finds_them_again(tmp_path):
    from prodsc.report.previews import open_previews

    (tmp_path / "photos").mkdir()
    for i in range(3):
        Image.new("RGB", (4, 4), (80 * i, 0, 0)).save(tmp_path / "photos" / f"{i}.png")
    made, _ = encoder()
    extract(tmp_path / "photos", made, tmp_path / "f.npz")
    shown = open_previews(open_source(tmp_path / "f.npz"))
    assert shown.image(2).getpixel((0, 0)) == (160, 0, 0)
