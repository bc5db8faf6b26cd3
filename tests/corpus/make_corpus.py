"""Small files of every format that prodsc reads: sound ones to damage, and one for each way a file was once misread.

python tests/corpus/make_corpus.py FOLDER
"""

import gzip
import io
import json
import os
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import scipy.sparse
import torch
from safetensors.torch import save_file

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 5)).astype(np.float32)
Y = np.array([7, 7, 3, 3, 3, 9, 9, 7, 3, 9, 9, 7])
POSITIVE = np.float64(X * (X > 0))
HUGE = (2**20, 2**10)  # 4 GB of float32


# ---- sound files -----------------------------------------------------------------------------------------------------


def _table(**columns: object) -> pa.Table:
    return pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])} | columns)


def _csv(path: Path, separator: str = ",", decimal: str = ".", header: str = "a,b,c,d,e,label") -> None:
    lines = [separator.join(header.split(","))] if header else []
    for row, label in zip(X.tolist(), Y.tolist(), strict=True):
        lines.append(separator.join([*(f"{value:.5f}".replace(".", decimal) for value in row), str(label)]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _csr_pt(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls this format new
        torch.save({"X": torch.tensor(POSITIVE).to_sparse_csr(), "y": Y.tolist()}, path)


def _h5ad(path: Path, matrix: object) -> None:
    with h5py.File(path, "w") as file:
        if scipy.sparse.issparse(matrix):
            group = file.create_group("X")
            group.attrs.update({"encoding-type": f"{matrix.format}_matrix", "shape": matrix.shape})
            group["data"], group["indices"], group["indptr"] = matrix.data, matrix.indices, matrix.indptr
        else:
            file["X"] = matrix
        values, codes = np.unique(Y, return_inverse=True)
        obs = file.create_group("obs/label")
        obs["codes"], obs["categories"] = codes.astype(np.int8), [f"type {value}" for value in values]
        file["obs/_index"] = [f"cell {i}" for i in range(len(Y))]
        file["var/_index"] = [f"gene {j}" for j in range(5)]


def _mat73(path: Path, sparse: bool = False) -> None:
    with h5py.File(path, "w", userblock_size=512) as file:
        if sparse:
            matrix, group = scipy.sparse.csc_matrix(POSITIVE), file.create_group("X")
            group["data"], group["ir"], group["jc"] = matrix.data, matrix.indices, matrix.indptr
            group.attrs["MATLAB_sparse"] = np.uint64(12)
        else:
            file["X"], file["y"] = X.T, Y[None].astype(np.float64)
            file["X"].attrs["MATLAB_class"] = np.bytes_("single")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def _idx(path: Path) -> None:
    path.write_bytes(gzip.compress(b"\0\0\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (3, 4, 4)) + bytes(48)))


def _tar(path: Path) -> None:
    content = bytes(3073 * 4)
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))


def _har(path: Path, train: str = "0.1 0.2 0.3\n0.4 0.5 0.6\n") -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, rows in (("train", train), ("test", "0.1 0.2 0.3\n0.4 0.5 0.6\n")):
            archive.writestr(f"UCI HAR Dataset/{part}/X_{part}.txt", rows)
            archive.writestr(f"UCI HAR Dataset/{part}/y_{part}.txt", "1\n2\n")


SOUND: dict[str, Callable[[Path], object]] = {
    "float32.npy": lambda path: np.save(path, X),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(POSITIVE)),
    "arrays.npz": lambda path: np.savez(path, X=X, y=Y, ids=np.array([f"row {i}" for i in range(12)])),
    "packed.npz": lambda path: np.savez_compressed(path, X=X, labels=Y.astype(str), classes=np.array(["a", "b", "c"])),
    "csr.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.csr_array(POSITIVE), compressed=False),
    "csc.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.csc_matrix(POSITIVE)),
    "coo.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.coo_array(POSITIVE), compressed=False),
    "bsr.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.bsr_array(POSITIVE, blocksize=(3, 5))),
    "dia.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.dia_array(POSITIVE), compressed=False),
    "dict.pt": lambda path: torch.save({"features": torch.tensor(X), "ys": torch.tensor(Y)}, path),
    "tensor.pt": lambda path: torch.save(torch.tensor(X).bfloat16(), path),
    "coo.pt": lambda path: torch.save(torch.tensor(POSITIVE).to_sparse(), path),
    "csr.pt": _csr_pt,
    "old.pt": lambda path: torch.save({"X": torch.tensor(X)}, path, _use_new_zipfile_serialization=False),
    "two.safetensors": lambda path: save_file({"features": torch.tensor(X), "labels": torch.tensor(Y)}, path),
    "half.safetensors": lambda path: save_file({"X": torch.tensor(X).bfloat16()}, path),
    "plain.parquet": lambda path: pq.write_table(_table(label=Y), path, compression="none", use_dictionary=False),
    "snappy.parquet": lambda path: pq.write_table(_table(label=Y.astype(str)), path, row_group_size=5),
    "vectors.parquet": lambda path: pq.write_table(
        pa.table({"X": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 5), "y": Y}), path, compression="zstd"
    ),
    "header.csv": _csv,
    "plain.csv": lambda path: _csv(path, header=""),
    "semicolon.csv": lambda path: _csv(path, ";", ","),
    "tabs.tsv": lambda path: _csv(path, "\t"),
    "v5.mat": lambda path: scipy.io.savemat(path, {"fea": X, "gnd": Y[:, None], "names": ["a", "b"]}),
    "packed.mat": lambda path: scipy.io.savemat(path, {"X": POSITIVE, "y": Y}, do_compression=True),
    "sparse.mat": lambda path: scipy.io.savemat(path, {"X": scipy.sparse.csc_matrix(POSITIVE), "gnd": Y}),
    "nested.mat": lambda path: scipy.io.savemat(path, {"X": X, "s": {"a": [1, 2], "b": "text"}}),
    "v4.mat": lambda path: scipy.io.savemat(path, {"X": POSITIVE, "y": Y}, format="4"),
    "v73.mat": _mat73,
    "v73-sparse.mat": lambda path: _mat73(path, sparse=True),
    "dense.h5ad": lambda path: _h5ad(path, X),
    "csr.h5ad": lambda path: _h5ad(path, scipy.sparse.csr_matrix(POSITIVE)),
    "labels.txt": lambda path: path.write_text("\n".join(map(str, Y)) + "\n", encoding="utf-8"),
    "pairs.pairs": lambda path: path.write_text("first,second\n0,1\n2,3\n", encoding="utf-8"),
    "texts.texts": lambda path: path.write_text('text,n\n"one, two",1\nthree,2\n', encoding="utf-8"),
    "recipe.toml": lambda path: path.write_text(
        '[about]\ntitle = "ours"\nours = ["gamma"]\n[parameters]\nbatch_size = 512\ngamma = 2.5\n', encoding="utf-8"
    ),
    "images.idx": _idx,
    "cifar.tar": _tar,
    "har.zip": _har,
}


# ---- files that were once misread ------------------------------------------------------------------------------------


def _wrong_index(path: Path, index: int) -> None:
    matrix = scipy.sparse.csr_matrix(np.eye(12))
    indices = matrix.indices.astype(np.int64)
    indices[5] = index
    np.savez(path, data=matrix.data, indices=indices, indptr=matrix.indptr, format=b"csr", shape=(12, 12))


def _wrong_index_pt(path: Path) -> None:
    indices = torch.tensor([[0, 1], [0, 10**9]])
    torch.save(torch.sparse_coo_tensor(indices, torch.ones(2), (12, 5), check_invariants=False), path)


def _bomb_npz(path: Path) -> None:
    """4 MB that declare 4 GB, in the header of the array and in the directory of the archive."""
    start = io.BytesIO()
    np.lib.format.write_array_header_1_0(start, {"descr": "<f4", "fortran_order": False, "shape": HUGE})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", start.getvalue() + rng.bytes(4 * 2**20))
        archive.filelist[0].file_size = start.tell() + 4 * HUGE[0] * HUGE[1]


def _bomb_sparse_npz(path: Path) -> None:
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(HUGE, dtype=np.float32))


def _bomb_h5ad(path: Path, sparse: bool = False) -> None:
    with h5py.File(path, "w") as file:
        if sparse:
            group = file.create_group("X")
            group.attrs.update({"encoding-type": "csr_matrix", "shape": HUGE})
            group["data"], group["indices"] = np.ones(1, np.float32), np.zeros(1, np.int32)
            group["indptr"] = np.r_[0, np.ones(HUGE[0], np.int32)]
        else:
            file.create_dataset("X", HUGE, np.float32, chunks=(1024, 1024))


def _bomb_parquet(path: Path) -> None:
    """1.3 GB of one value in runs."""
    ones = pa.table({f"c{j}": np.ones(2**20, np.int8) for j in range(16)})
    with pq.ParquetWriter(path, ones.schema) as writer:
        for _ in range(20):
            writer.write_table(ones)


def _long_label_parquet(path: Path) -> None:
    """100 GB of labels: one text of a million characters, and 100,000 times its number."""
    labels = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**5, np.int32)), pa.array(["x" * 10**6]))
    pq.write_table(pa.table({"a": np.arange(10**5, dtype=np.float32), "label": labels}), path)


def _long_vectors_parquet(path: Path) -> None:
    """1.3 GB of vectors of zeros: reading the first rows alone would take all of it."""
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**24)), 2**20)
    with pq.ParquetWriter(path, pa.schema({"X": zeros.type}), compression="zstd") as writer:
        for _ in range(10):
            writer.write_table(pa.table({"X": zeros}))


def _long_label_csv(path: Path) -> None:
    """NumPy gives every text the room of the longest: 2,000 labels take 4 GB."""
    rows = "".join(f"{i}.5,short\n" for i in range(1999))
    path.write_text(f"a,label\n{rows}0.5,{'x' * 2**19}\n")


def _long_category_h5ad(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["X"] = np.ones((10**4, 2), np.float32)
        file["obs/label/codes"], file["obs/label/categories"] = np.zeros(10**4, np.int8), ["x" * 2**18]


def _damaged_pt(path: Path) -> None:
    """One bit of a value changed; torch does not compare checksums."""
    torch.save({"features": torch.tensor(X), "ys": torch.tensor(Y)}, path)
    content = bytearray(path.read_bytes())
    content[content.index(X.tobytes()[:16]) + 3] ^= 1
    path.write_bytes(content)


def _fewer_rows(path: Path) -> None:
    np.save(path, X)
    path.write_bytes(path.read_bytes().replace(b"(12, 5)", b"(10, 5)"))


def _linked(path: Path, kind: str) -> None:
    """A file whose X is in another file: by an external link, a virtual data set, or external storage."""
    other = path.with_name(f"secret-of-{path.stem}.bin")
    other.write_bytes(bytes(range(240)) + b"password")
    with h5py.File(other.with_suffix(".h5"), "w") as file:
        file["X"] = X
    with h5py.File(path, "w") as file:
        if kind == "link":
            file["X"] = h5py.ExternalLink(str(other.with_suffix(".h5")), "X")
        elif kind == "soft":
            file["far"] = h5py.ExternalLink(str(other.with_suffix(".h5")), "/")
            file["X"] = h5py.SoftLink("/far/X")
        elif kind == "virtual":
            layout = h5py.VirtualLayout((12, 5), np.float32)
            layout[:] = h5py.VirtualSource(str(other.with_suffix(".h5")), "X", (12, 5))
            file.create_virtual_dataset("X", layout)
        else:
            file.create_dataset("X", (12, 5), np.float32, external=[(str(other), 0, 240)])


def _self_link(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("test_batch.bin")
        member.type, member.linkname = tarfile.SYMTYPE, "test_batch.bin"
        archive.addfile(member)


def _text(content: str | bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "index-9.npz": (lambda path: _wrong_index(path, 10**9), "cannot be read as .npz"),
    "index-13.npz": (lambda path: _wrong_index(path, 13), "cannot be read as .npz"),
    "index.pt": (_wrong_index_pt, "cannot be read as .pt"),
    "bomb.npz": (_bomb_npz, "more than 100 times as much"),
    "sparse-bomb.npz": (_bomb_sparse_npz, "more than 100 times as much"),
    "bomb.h5ad": (_bomb_h5ad, "more than 100 times as much"),
    "sparse-bomb.h5ad": (lambda path: _bomb_h5ad(path, sparse=True), "more than 100 times as much"),
    "sparse-bomb.pt": (
        lambda path: torch.save(torch.sparse_coo_tensor(torch.zeros(2, 1).long(), torch.ones(1), HUGE), path),
        "more than 100 times as much",
    ),
    "expanded.pt": (lambda path: torch.save(torch.zeros(1).expand(HUGE), path), "more than 100 times as much"),
    "bomb.parquet": (_bomb_parquet, "more than 100 times as much"),
    "long-label.parquet": (_long_label_parquet, "'label' would take .* more than 100 times as much"),
    "long-vectors.parquet": (_long_vectors_parquet, "'X' would take .* more than 100 times as much"),
    "long-label.csv": (_long_label_csv, "'label' would take .* more than 100 times as much"),
    "long-category.h5ad": (_long_category_h5ad, "its text would take .* more than 100 times as much"),
    "bit.pt": (_damaged_pt, "the checksum of its part .* is wrong"),
    "rows.npy": (_fewer_rows, r"declares 200 bytes for shape \(10, 5\) of float32, and 240 follow"),
    "link.h5ad": (lambda path: _linked(path, "link"), "is a link to .*, and links are not followed"),
    "soft.h5ad": (lambda path: _linked(path, "soft"), "is a link to .*, and links are not followed"),
    "virtual.h5ad": (lambda path: _linked(path, "virtual"), "has its values in other files"),
    "external.h5ad": (lambda path: _linked(path, "external"), "has its values in other files"),
    "nul.csv": (_text(b"a,b\n1,2\n3\0,4\n"), "has a NUL byte at position 9"),
    "utf16.csv": (_text("a,b\n1,2\n".encode("utf-16")), "has a NUL byte"),
    "two-y.csv": (_text("a,y,y\n1,0,1\n2,1,0\n"), "more than one column 'y'"),
    "thousands.csv": (_text('a,b\n"1,234","2,345"\n'), "number '1,234' in the column 'a'; a comma in a number may"),
    "quoted-commas.csv": (_text('a,b\n1.5,"2,5"\n3,"4,5"\n'), "number '2,5' in the column 'b'; a comma in a number"),
    "dates.csv": (_text("a,b\n2020-01-01,1\n2020-01-02,2\n"), "columns that are not numbers: a"),
    "ragged.csv": (_text("a,b\n1,2\n3\n"), "cannot be read as .csv"),
    "fifo.npy": (lambda path: os.mkfifo(path), "is a pipe, socket or device, not a file"),
    "deep.safetensors": (_text((8 * 10**5).to_bytes(8, "little") + b"[" * 8 * 10**5), "cannot be read as"),
    "folders.npz": (lambda path: path.mkdir(), "is a directory"),
}

ACCEPTED: dict[str, tuple[Callable[[Path], object], object, str]] = {
    "years.csv": (
        _text("2019,2020,2021\n5,3,1\n7,2,4\n"),
        [[5, 3, 1], [7, 2, 4]],
        "the first row .* counts up, so that it is taken for the names of the columns",
    ),
    "xy.csv": (_text("x,y\n0.5,1\n2.5,3\n"), [[0.5, 1], [2.5, 3]], "'y' of .* is used as a feature"),
    "id.csv": (
        _text("id,a\n17,0.5\n4,1.5\n9,2.5\n"),
        [[17, 0.5], [4, 1.5], [9, 2.5]],
        r"'id' of .* has another whole number in every row.*--id id, or prodsc.open_source",
    ),
    "commas.csv": (_text("a;b\n1,5;2\n-3,25;4,5\n"), [[1.5, 2], [-3.25, 4.5]], ""),
    "no-header-commas.csv": (_text("1,5;2,5\n-3,25;4,5\n"), [[1.5, 2.5], [-3.25, 4.5]], ""),
    "late-commas.csv": (_text("a;b\n1;2\n3;4\n-3,25;4,5\n"), [[1, 2], [3, 4], [-3.25, 4.5]], ""),
    "commas.tsv": (_text("a\tb\n1,5\t2\n-3,25\t4,5\n"), [[1.5, 2], [-3.25, 4.5]], ""),
    "data.csv": (_text("1,2,3\n4,5,6\n"), [[1, 2, 3], [4, 5, 6]], ""),
}


def _empty_idx(path: Path) -> None:
    """4 billion images without pixels."""
    path.write_bytes(gzip.compress(b"\0\0\x08\x03" + b"\xff" * 4 + bytes(8)))


ARCHIVES: dict[str, Callable[[Path], object]] = {
    "self-link.tar": _self_link,
    "empty.idx": _empty_idx,
    "columns.zip": lambda path: _har(path, "0.1 0.2\n0.4 0.5\n"),
}


def write(names: dict[str, Callable[[Path], object]], folder: Path) -> list[Path]:
    """Write some of the files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in names.items():
        make(folder / name)
    return [folder / name for name in names]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    write(SOUND | ARCHIVES | {name: make for name, (make, *_) in (REFUSED | ACCEPTED).items()}, target)
    sizes = {path.name: path.stat().st_size for path in sorted(target.iterdir())}
    print(json.dumps(sizes, indent=2))
