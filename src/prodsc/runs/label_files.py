"""Labels of any number of rows into a file, shard by shard; after an interruption the same call continues.

    source --> shards --> blocks of rows --> model.labelled --> OUT.parts/000007.npy --> OUT

OUT.parts has one file for each finished shard, written whole or not at all, and job.json, which says what is labelled
by what. When all are there they are joined to OUT, so that no row can be missing or be there twice.
"""

from __future__ import annotations

import io
import shutil
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prodsc import files, ranks
from prodsc.errors import InputError, OutputError, ParameterError
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability, require_capability
from prodsc.progress import ProgressFunction
from prodsc.ray_tasks import map_with_ray
from prodsc.registry import load
from prodsc.runs.label_outputs import OUTPUTS, columns_taken, no_labels
from prodsc.sources.choice import NO_CHOICE, ColumnChoice
from prodsc.sources.door import open_source
from prodsc.sources.fingerprint import block_digest
from prodsc.sources.rows import as_array
from prodsc.sources.shards import BLOCK_ROWS, Shard, is_sharded, list_shards, read_blocks

JOB, PARTS = "job.json", ".parts"
ENGINES = ("local", "ray")


def predict_to_file(
    model: Clusterer | str | PathLike[str],
    source: Any,
    out: str | PathLike[str],
    *,
    with_outliers: bool = False,
    names: list[str] | None = None,
    exclude: Collection[str] = (),
    choice: ColumnChoice = NO_CHOICE,
    overwrite: bool = False,
    engine: str = "local",
    workers: int = 1,
    progress: ProgressFunction | None = None,
) -> int:
    """Label any number of rows into a file, in memory that does not grow with them.

    The rows are labelled shard by shard, about a million rows each. If the call is interrupted, the same call
    continues with the shards that are not finished.

    Parameters
    ----------
    model : estimator or path
        A fitted model that can label new rows, or the folder of one.
    source : path, address, iterator of arrays, or any rows
        A .npy or .parquet file, a folder of such files, a Lance data set (.lance), or the address of Parquet files
        (s3://...). An iterator gives blocks of rows; to continue, give an iterator of the same blocks. Whatever else
        `fit` takes is taken too.
    out : path
        A .npy file (the labels only), a .parquet file, or a Lance data set. If it is the Lance data set that is the
        source, the labels become columns of it.
    with_outliers : bool
        Whether to score outliers too, where the method can. It takes several times as long as the labels.
    names : list of str, optional
        Names of the clusters, to be written beside the labels.
    exclude : collection of str
        Columns of the source that are no features.
    choice : ColumnChoice
        Which columns of the source are what.
    overwrite : bool
        Replace an existing file, or existing columns of a Lance data set.
    engine : {"local", "ray"}
        What runs the work: this process (or, under torchrun, all ranks), or Ray.
    workers : int
        Processes of Ray.
    progress : callable, optional
        Called with the rows done and the rows in total, which is 0 where it is not known.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    OutputError
        If `out` exists or cannot be written.
    """
    if engine not in ENGINES:
        raise ParameterError(f"engine={engine!r} must be one of {', '.join(ENGINES)}.")
    if isinstance(choice.impute, str) and choice.impute == "median":
        raise ParameterError(
            "impute='median' needs all rows at once; fit with it, and the medians of the fit are used."
        )
    target = checked_output(Path(out).expanduser(), source, overwrite)
    loaded = model if isinstance(model, Clusterer) else load(Path(model))
    require_capability(loaded, Capability.PREDICT, "predict")
    task = LabelTask(loaded, with_outliers, tuple(exclude), choice)
    if not is_sharded(source):
        if engine != "local":
            raise ParameterError(f"engine={engine!r} labels files; write the rows to a .npy file first.")
        parts = _label_blocks(task, _blocks_of(source, task), _Parts.open(target, task.digest(), "blocks"), progress)
    else:
        shards = list_shards(source)
        folder = _Parts.open(target, task.digest(), [asdict(shard) for shard in shards])
        run = partial(_label_here, task) if engine == "local" else _ray_engine(task, model, workers)
        parts = _label_shards(run, shards, folder, progress)
    n = sum(len(part) for part in parts)
    if ranks.first():
        OUTPUTS[target.suffix](target, parts, names, _lance_source(source, target))
        shutil.rmtree(parts.folder)
    ranks.wait()
    return n


def checked_output(out: Path, source: Any, overwrite: bool) -> Path:
    """The path, if labels may be written there; else an OutputError."""
    if out.suffix not in OUTPUTS:
        raise OutputError(f"{out} must end in one of {', '.join(OUTPUTS)}; choose another name.")
    if _lance_source(source, out) is not None:
        if not overwrite and (taken := columns_taken(out)):
            raise OutputError(f"{out} has the columns {', '.join(taken)}. Allow to replace them (--overwrite).")
        return out
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists. Choose another name, or allow to overwrite it (--overwrite).")
    if files.is_one_of(out, [source]):
        raise OutputError(f"{out} is an input of this command and is never replaced. Choose another name.")
    return out


def _lance_source(source: Any, out: Path) -> Path | None:
    same = isinstance(source, (str, PathLike)) and out.suffix == ".lance" and out.exists()
    return out if same and Path(source).expanduser().resolve() == out.resolve() else None


# ---- the work on one block -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelTask:
    """What is done with every block of rows."""

    model: Clusterer
    with_outliers: bool
    exclude: tuple[str, ...]
    choice: ColumnChoice

    def digest(self) -> str:
        """Of everything that labels depend on, except the rows."""
        tensors, facts = self.model._state()
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        about = [type(self.model).__name__, facts.get("order"), self.with_outliers, self.exclude, self.choice.to_json()]
        return sha256(f"{files.tensors_sha256(plain, {})} {about}".encode()).hexdigest()

    def columns(self) -> list[str] | None:
        """Names of the columns that the model needs, where it knows any."""
        return self.model._column_names()

    def of_shard(self, shard: Shard) -> np.ndarray:
        """Labels of all rows of a shard."""
        blocks = read_blocks(shard, self.columns(), self.exclude)
        labels = np.concatenate([self.of_block(block) for block in blocks])
        if len(labels) != len(shard):
            raise InputError(f"{shard.path} has {len(labels)} rows where {len(shard)} were expected; write it again.")
        return labels

    def of_block(self, block: Any) -> np.ndarray:
        """Labels of a block of rows; a row that is left out because values are missing has the label -1."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same ones for every block
            opened = open_source(block, exclude=self.exclude, choice=replace(self.choice, id=None, strict=False))
            parts = [*self.model.labelled(opened, with_outliers=self.with_outliers)]
        columns = [np.concatenate(values) for values in zip(*parts, strict=True)]
        labels = no_labels(len(block), len(columns))
        rows = slice(None) if opened.kept is None else opened.kept
        for name, values in zip(labels.dtype.names or (), columns, strict=True):
            labels[name][rows] = values
        return labels


def _blocks_of(source: Any, task: LabelTask) -> Iterator[Any]:
    """Blocks of rows of an iterator, or of rows that are opened as a whole."""
    if isinstance(source, Iterator):
        yield from source
        return
    opened = open_source(source, exclude=task.exclude, choice=task.choice)
    array = as_array(opened, columns=task.columns())
    for start in range(0, len(array), BLOCK_ROWS):
        yield array[start : start + BLOCK_ROWS]


# ---- parts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """The finished parts of a job in a folder, in order."""

    folder: Path
    names: tuple[str, ...] = ()

    @classmethod
    def open(cls, out: Path, digest: str, source: Any) -> _Parts:
        """The folder of a job; parts of another job are removed."""
        folder, job = out.with_name(out.name + PARTS), {"digest": digest, "source": source}
        if ranks.first():
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not (folder / JOB).is_file() or files.read_json(folder / JOB) != job:
                    for old in folder.glob("*.npy"):
                        old.unlink()
                    files.write_json(folder / JOB, job)
            except (OSError, ValueError) as error:
                raise OutputError(f"cannot write {folder}: {error}. Remove it, or choose another place.") from error
        ranks.wait()
        return cls(folder)

    def make(self, name: str, work: Callable[[], np.ndarray]) -> None:
        """Write one part, unless it is there."""
        if not (self.folder / name).exists():
            self.write(name, work())

    def write(self, name: str, labels: np.ndarray) -> None:
        with files.atomic(self.folder / name) as part, part.open("wb") as file:
            np.save(file, labels)

    def __iter__(self) -> Iterator[np.ndarray]:
        return (np.load(self.folder / name, allow_pickle=False) for name in self.names)


def _label_blocks(task: LabelTask, blocks: Iterable[Any], parts: _Parts, progress: ProgressFunction | None) -> _Parts:
    """Label blocks one after the other; the name of a part has a digest of its rows, as an iterator has no version."""
    names, done = [], 0
    for i, block in enumerate(blocks):
        digest = block_digest(np.asarray(block)).hex()[:16]
        names.append(f"{i:06d}-{digest}.npy")
        parts.make(names[-1], partial(task.of_block, block))
        done += len(block)
        if progress is not None:
            progress(done, 0)
    if not names:
        raise InputError("the source has no rows; give some.")
    return replace(parts, names=tuple(names))


def _label_shards(
    run: Callable[[list[Shard]], Iterator[tuple[Shard, np.ndarray]]],
    shards: list[Shard],
    parts: _Parts,
    progress: ProgressFunction | None,
) -> _Parts:
    """Label the shards that are not finished; each rank takes every so many-th."""
    name_of = {shard: f"{i:06d}.npy" for i, shard in enumerate(shards)}
    left = [shard for shard in shards if not (parts.folder / name_of[shard]).exists()]
    done = sum(map(len, shards)) - sum(map(len, left))
    ranks.wait()  # all ranks see the same parts before the first is added
    for shard, labels in run(left[ranks.rank() :: ranks.size()]):
        parts.write(name_of[shard], labels)
        done += len(shard)
        if progress is not None:
            progress(done, sum(map(len, shards)))
    ranks.wait()
    return replace(parts, names=tuple(name_of.values()))


def _label_here(task: LabelTask, shards: list[Shard]) -> Iterator[tuple[Shard, np.ndarray]]:
    for shard in shards:
        yield shard, task.of_shard(shard)


def _ray_engine(task: LabelTask, model: Any, workers: int) -> Callable[[list[Shard]], Iterator[Any]]:
    """The same work in processes of Ray, which load the model themselves."""
    if isinstance(model, Clusterer):
        raise ParameterError("engine='ray' loads the model in every process; save it and give its folder.")
    options = (task.with_outliers, task.exclude, task.choice)

    def run(shards: list[Shard]) -> Iterator[tuple[Shard, np.ndarray]]:
        arguments = (str(Path(model).resolve()), options, shards)
        for i, content in map_with_ray(ShardLabeller, arguments, range(len(shards)), workers):
            yield shards[i], np.load(io.BytesIO(content), allow_pickle=False)

    return run


class ShardLabeller:
    """Labels shards in a process of Ray: from the number of a shard to the content of its part.

    Parameters
    ----------
    folder : str
        Of the model.
    options : tuple
        Further arguments of `LabelTask`.
    shards : list of Shard
        All shards.
    """

    def __init__(self, folder: str, options: tuple[Any, ...], shards: list[Shard]):
        self.task, self.shards = LabelTask(load(folder), *options), shards

    def __call__(self, number: int) -> bytes:
        content = io.BytesIO()
        np.save(content, self.task.of_shard(self.shards[number]))
        return content.getvalue()
