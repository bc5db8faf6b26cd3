"""Downloads against a server of our own: whole, cut, resumed, refused, forged; then the archives become arrays."""

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from prodsc.errors import InputError, OutputError
from prodsc.sources.archives import cifar10_images, cifar10_test_images, idx_images, uci_har
from prodsc.sources.catalogue import DATASETS, Remote
from prodsc.sources.door import load_dataset
from prodsc.sources.fetch import download, fetch
from prodsc.sources.named import compare_checksum

CONTENT = np.random.default_rng(0).bytes(1_000_000)


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `files`; answers the n-th request as the n-th of `behaviour` says, and then as it should."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"big.bin": CONTENT}
        self.behaviour = []  # "ok", a status, or how many bytes to send before the line is cut
        self.ranges = True
        self.tells_length = True
        self.requests = []  # the Range header of each

    def url(self, name="big.bin"):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        number, asked = len(server.requests), self.headers.get("Range")
        server.requests.append(asked)
        what = server.behaviour[number] if number < len(server.behaviour) else "ok"
        content = server.files.get(self.path[1:])
        if content is None or (isinstance(what, str) and what.isdigit()):
            self.send_error(404 if content is None else int(what))
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and server.ranges else 0
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if server.tells_length:
            self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:] if what == "ok" else content[start : start + what])

    def log_message(self, *_):
        pass


@pytest.fixture(autouse=True)
def alone(tmp_path_factory, monkeypatch):
    """An empty cache, and no way around our own server."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("PRODSC_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def get(server, folder, content=CONTENT, **how):
    how = {"sha256": sha256(content), "first_wait": 0} | how
    return download(server.url(), folder / "big.bin", **how)


def test_a_whole_download(server, tmp_path):
    told = []
    path = get(server, tmp_path / "new" / "folder", progress=lambda *what: told.append(what))
    assert path.read_bytes() == CONTENT
    assert [p.name for p in path.parent.iterdir()] == ["big.bin"]
    assert told[0] == ("big.bin", 0, len(CONTENT))
    assert told[-1] == ("big.bin", len(CONTENT), len(CONTENT))
    assert get(server, path.parent) == path
    assert len(server.requests) == 1  # what is here and right is not asked for again
    path.write_bytes(b"damaged")
    assert get(server, path.parent).read_bytes() == CONTENT


@pytest.mark.parametrize("tells_length", [True, False])
def test_a_download_has_a_cap(tells_length, server, tmp_path):
    server.tells_length = tells_length
    with pytest.raises(InputError, match=r"sends more than 0.0 GB, the most that is downloaded; get the file"):
        get(server, tmp_path, max_bytes=len(CONTENT) - 1)
    assert list(tmp_path.iterdir()) == []
    assert get(server, tmp_path, max_bytes=len(CONTENT)).read_bytes() == CONTENT


def test_a_cut_download_is_continued(server, tmp_path):
    server.behaviour = [400_000, 250_000]
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=400000-", "bytes=650000-"]


def test_a_download_is_continued_by_a_later_call(server, tmp_path):
    server.behaviour = [400_000]
    with pytest.raises(InputError, match=r"in 1 attempts \(the connection was cut after 400,000 of 1,000,000 bytes"):
        get(server, tmp_path, attempts=1)
    assert (tmp_path / "big.bin.part").stat().st_size == 400_000
    assert not (tmp_path / "big.bin").exists()
    told = []
    assert get(server, tmp_path, progress=lambda *what: told.append(what[1:])).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=400000-"]
    assert told[0] == (400_000, 1_000_000)
    assert not (tmp_path / "big.bin.part").exists()


def test_a_server_that_knows_no_ranges(server, tmp_path):
    server.ranges, server.behaviour = False, [400_000]
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=400000-"]


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(InputError, match=f"its sha256 is {sha256(CONTENT)}, expected {'0' * 64}. Nothing was kept"):
        get(server, tmp_path, sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []
    assert len(server.requests) == 1


def test_the_beginning_of_another_version_is_thrown_away(server, tmp_path):
    (tmp_path / "big.bin.part").write_bytes(b"x" * 1000)
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.requests == ["bytes=1000-", None]


@pytest.mark.parametrize("extra", [b"", b"and more"])
def test_a_part_that_needs_nothing_more(extra, server, tmp_path):
    (tmp_path / "big.bin.part").write_bytes(CONTENT + extra)
    assert get(server, tmp_path).read_bytes() == CONTENT
    assert server.requests == [f"bytes={len(CONTENT + extra)}-"] + [None] * bool(extra)


def test_without_a_checksum_nothing_is_pieced_together(server, tmp_path):
    server.behaviour = [400_000]
    assert get(server, tmp_path, sha256=None).read_bytes() == CONTENT
    assert server.requests == [None, None]


def test_a_file_that_is_not_there(server, tmp_path):
    with pytest.raises(InputError, match=r"gone cannot be downloaded: the server answered 404 .*put it at .*/big.bin"):
        download(server.url("gone"), tmp_path / "big.bin", sha256="0" * 64)
    assert len(server.requests) == 1  # it will not come back by asking
    assert list(tmp_path.iterdir()) == []


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.behaviour = ["503", "429"]
    assert get(server, tmp_path).read_bytes() == CONTENT
    server.requests.clear()
    server.behaviour = ["503"] * 9
    (tmp_path / "big.bin").unlink()
    with pytest.raises(InputError, match=r"in 3 attempts \(the server answered 503 .*Try again later, or get the file"):
        get(server, tmp_path, attempts=3)
    assert len(server.requests) == 3


def test_no_server_at_all(tmp_path):
    with Server() as gone:
        url = gone.url()
    with pytest.raises(InputError, match=r"could not be downloaded in 2 attempts .*refused"):
        download(url, tmp_path / "big.bin", sha256="0" * 64, attempts=2, first_wait=0)


def test_a_place_that_cannot_be_written(server, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        get(server, tmp_path / "file")
    (tmp_path / "big.bin.part").mkdir()
    with pytest.raises(OutputError, match=r"cannot write .*big.bin.part"):
        get(server, tmp_path)


# ---- archives --------------------------------------------------------------------------------------------------------

IMAGES = np.arange(5 * 4 * 3, dtype=np.uint8).reshape(5, 4, 3)
LABELS = np.array([1, 0, 2, 2, 0], dtype=np.uint8)


def idx(array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
    return gzip.compress(head + array.tobytes(), mtime=0)


def cifar(seed=0, n=3):
    """Labels and images n x 32 x 32 x 3 of each batch, and their archive: all red, then green, then blue bytes."""
    rng = np.random.default_rng(seed)
    names = [*(f"data_batch_{i}.bin" for i in (3, 1, 2, 4, 5)), "test_batch.bin"]  # in no order
    batches = {name: (rng.integers(0, 10, n), rng.integers(0, 256, (n, 32, 32, 3), np.uint8)) for name in names}
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, (y, X) in [*batches.items(), ("readme.html", ([], []))]:
            planes = [b"".join(image[:, :, c].tobytes() for c in range(3)) for image in X]
            content = b"".join(bytes([label]) + image for label, image in zip(y, planes, strict=True))
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return batches, file.getvalue()


def har(nested=True):
    texts = {
        "train/X_train.txt": "  1.0e-001 -2.0e+000\n -3.0e-001  4.0e-001\n",
        "train/y_train.txt": "5\n1\n",
        "test/X_test.txt": "  7.0e-001  8.0e-001\n",
        "test/y_test.txt": "6\n",
    }
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for name, text in texts.items():
            archive.writestr(f"UCI HAR Dataset/{name}", text)
            archive.writestr(f"__MACOSX/UCI HAR Dataset/{name}", "junk")
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("UCI HAR Dataset.names", "words")
        archive.writestr("UCI HAR Dataset.zip", inner.getvalue())
    return (outer if nested else inner).getvalue()


def offered(monkeypatch, server, name, contents):
    """The set of that name, its archives on our server; returns what is known of it."""
    info = DATASETS[name]
    names = [remote.name for remote in info.remotes]
    server.files |= dict(zip(names, contents, strict=True))
    remotes = tuple(
        Remote(info.remotes[0].folder, server.url(each), sha256(content))
        for each, content in zip(names, contents, strict=True)
    )
    info = replace(info, remotes=remotes)
    monkeypatch.setitem(DATASETS, name, info)
    return info


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_fetch_idx(name, server, tmp_path, monkeypatch):
    contents = [idx(IMAGES), idx(LABELS), idx(IMAGES[:3] + 1), idx(LABELS[:3])]
    info = offered(monkeypatch, server, name, contents)
    path = fetch(name, data_dir=tmp_path)
    assert path == tmp_path / info.files[0][0]
    data = load_dataset(name, data_dir=tmp_path)
    np.testing.assert_array_equal(data.X, np.concatenate([IMAGES, IMAGES[:3] + 1]))
    np.testing.assert_array_equal(data.y, np.concatenate([LABELS, LABELS[:3]]))
    np.testing.assert_array_equal(load_dataset(name, "test", data_dir=tmp_path).X, IMAGES[:3] + 1)
    assert compare_checksum(info, path, recompute=True) == "matches"  # its own checksum, written beside it
    asked = len(server.requests)
    assert fetch(name, data_dir=tmp_path) == path
    path.unlink()
    assert fetch(name, data_dir=tmp_path) == path  # made again from the downloads that were kept
    assert len(server.requests) == asked == 4


def test_fetch_cifar10(server, tmp_path, monkeypatch):
    batches, archive = cifar()
    offered(monkeypatch, server, "cifar10-images-full", [archive])
    offered(monkeypatch, server, "cifar10-images", [archive])
    fetch("cifar10-images-full", data_dir=tmp_path)
    fetch("cifar10-images", data_dir=tmp_path)
    assert len(server.requests) == 1  # both are made of one archive
    test = load_dataset("cifar10-images-full", "test", data_dir=tmp_path)
    y, X = batches["test_batch.bin"]
    np.testing.assert_array_equal(test.X, X)
    whole = np.load(tmp_path / "cifar10_60000.npz")
    np.testing.assert_array_equal(whole["X"][3:6], batches["data_batch_2.bin"][1])
    np.testing.assert_array_equal(whole["y"][-3:], y)
    np.testing.assert_array_equal(whole["split"], [0] * 15 + [1] * 3)
    np.testing.assert_array_equal(load_dataset("cifar10-images", data_dir=tmp_path).X, X)


@pytest.mark.parametrize("nested", [True, False])
def test_fetch_uci_har(nested, server, tmp_path, monkeypatch):
    offered(monkeypatch, server, "uci-har", [har(nested)])
    fetch("uci-har", data_dir=tmp_path)
    data = load_dataset("uci-har", data_dir=tmp_path)
    np.testing.assert_allclose(data.X, [[0.1, -2], [-0.3, 0.4], [0.7, 0.8]], rtol=1e-6)
    np.testing.assert_array_equal(data.y, [1, 0, 2])  # codes of 5, 1 and 6
    np.testing.assert_array_equal(load_dataset("uci-har", "train", data_dir=tmp_path).y, [1, 0])


def test_what_cannot_be_fetched():
    with pytest.raises(InputError, match="orl has no public address to download from: take ORL from"):
        fetch("orl")
    with pytest.raises(InputError, match="digits is computed here and needs no download"):
        fetch("digits")
    with pytest.raises(InputError, match=r"own.npz is a file, not a named data set"):
        fetch("own.npz")
    with pytest.raises(InputError, match="did you mean 'mnist'"):
        fetch("mnits")


@pytest.mark.parametrize(
    ("convert", "content"),
    [
        (idx_images, idx(IMAGES)),
        (cifar10_images, cifar()[1]),
        (cifar10_test_images, cifar()[1]),
        (uci_har, har()),
        (uci_har, har(nested=False)),
    ],
)
def test_damaged_archives_get_one_sentence(convert, content, tmp_path):
    path = tmp_path / "archive"
    middle = len(content) // 2
    hurt = content[: middle - 8] + b"damaged!" * 2 + content[middle + 8 :]
    for damaged in (b"", b"neither this nor that", content[:middle], hurt):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"archive .*(again|elsewhere)") as error:
            convert([path] * 4)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="archive"):
        convert([tmp_path / "no archive"] * 4)


@pytest.mark.parametrize(
    "content",
    [b"\0\0\x08\x03" + b"\0\0\0\x05" * 3 + b"short", b"\0\0\x0d\x01\0\0\0\x01abcd", b"\0\0\x08", b"\0\0\x08\x02\0\0"],
)
def test_gzip_that_is_not_idx(content, tmp_path):
    (tmp_path / "file.gz").write_bytes(gzip.compress(content, mtime=0))
    with pytest.raises(InputError, match=r"file.gz is not an IDX file of bytes, or is cut short; download it again"):
        idx_images([tmp_path / "file.gz"] * 4)


def test_archives_of_another_kind(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        member = tarfile.TarInfo("test_batch.bin")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"12345"))
    with pytest.raises(InputError, match=r"test_batch.bin has 5 bytes, no multiple of 3073"):
        cifar10_test_images([tmp_path / "a.tar"])
    with pytest.raises(InputError, match=r"data_batch_1.bin has 0 bytes"):
        cifar10_images([tmp_path / "a.tar"])
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("other.txt", "1")
    with pytest.raises(InputError, match=r"not the UCI HAR archive: it has no UCI HAR Dataset/train/X_train.txt"):
        uci_har([tmp_path / "a.zip"])
