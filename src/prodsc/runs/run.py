"""One run: a file in, a folder of results out. Interrupted at any moment, it goes on from its last checkpoint."""

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from prodsc import files, ranks
from prodsc.core.metrics import scores
from prodsc.errors import Interrupted, MissingExtraError, ModelFileError, OutputError, RankError
from prodsc.estimators.model_file import ABOUT, TENSORS, plain_parameters
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.progress import ProgressFunction
from prodsc.sources.door import open_source
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.readers import read_labels, read_pairs
from prodsc.sources.rows import as_array
from prodsc.sources.source import Source
from prodsc.system import machine, peak_memory_mb, versions
from prodsc.training import Callback

REQUEST, CHECKPOINT, RESULT = "run.json", "checkpoint.safetensors", "result.json"
LABELS, HISTORY, PAGE = "labels.csv", "history.csv", "report.html"
ALL_FILES = (REQUEST, CHECKPOINT, RESULT, LABELS, HISTORY, PAGE, TENSORS, ABOUT)


@dataclass(frozen=True)
class Request:
    """What was asked for; kept in the folder so that a stopped run can go on."""

    file: Path
    out: Path
    labels: str | None
    parameters: dict[str, Any]
    recipe: str | None = None
    command: str = ""
    known_labels: str | None = None  # what is known of a few rows: an array or column of the file, or another file
    must_link: str | None = None  # files of pairs
    cannot_link: str | None = None

    def known(self, source: Source) -> dict[str, Any]:
        """The constraints on the rows of `source` that are given to `fit`."""
        labels = None if self.known_labels is None else read_labels(source.path, self.known_labels)
        pairs = {"must_link": self.must_link, "cannot_link": self.cannot_link}
        return {"known_labels": labels} | {name: path and read_pairs(path) for name, path in pairs.items()}

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The request of an interrupted run."""
        if (folder / RESULT).exists():
            raise OutputError(f"{folder} holds a finished run; there is nothing to resume.")
        try:
            content = files.read_json(folder / REQUEST)
        except FileNotFoundError as error:
            raise ModelFileError(f"{folder} holds no run to resume ({REQUEST} is not there).") from error
        except ValueError as error:
            raise ModelFileError(f"{folder / REQUEST} is damaged ({error}). Start again with a new --out.") from error
        return cls.of(content, folder)

    @classmethod
    def of(cls, content: dict[str, Any], folder: Path) -> Self:
        """From what run.json holds."""
        return cls(**(content | {"file": Path(content["file"]), "out": folder}))

    def prepare(self, overwrite: bool) -> None:
        """Refuse an --out that is not ours to write; nothing is made yet."""
        if self.out.exists() and not self.out.is_dir():
            raise OutputError(f"--out {self.out} is a file. Name a folder that does not exist yet.")
        if self.out.is_dir() and any(self.out.iterdir()) and not overwrite:
            stopped = (self.out / REQUEST).exists() and not (self.out / RESULT).exists()
            hint = f"go on with it: prodsc fit --resume {self.out}" if stopped else "or give --overwrite"
            raise OutputError(f"--out {self.out} exists and is not empty. Choose another folder, {hint}.")

    def start(self) -> None:
        """Make the folder; results of an earlier run that may be overwritten go now, all of them."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            for name in ALL_FILES:
                (self.out / name).unlink(missing_ok=True)
        except OSError as error:
            raise files.unwritable(self.out, error) from error
        content = asdict(self) | {"file": str(self.file), "out": str(self.out)}
        files.write_json(self.out / REQUEST, content)


@dataclass(frozen=True)
class Result:
    out: Path
    sizes: list[int]
    scores: dict[str, float] | None
    seconds: float
    peak_memory_mb: float
    notes: list[str] = field(default_factory=list)
    report_seconds: float = 0.0  # on top: the page is for people, and most of its cost is pictures

    def summary(self) -> str:
        shown = ", ".join(map(str, self.sizes[:12])) + (", ..." if len(self.sizes) > 12 else "")
        lines = [f"{sum(self.sizes)} rows in {len(self.sizes)} clusters of sizes {shown}"]
        if self.scores is not None:
            lines.append("  ".join(f"{name} {value:.4f}" for name, value in self.scores.items()))
        lines += [f"note: {note}" for note in self.notes]
        page = f" and {self.report_seconds:.1f} s for the page" if self.report_seconds else ""
        lines.append(f"{self.seconds:.1f} s{page}, peak memory {self.peak_memory_mb:.0f} MB")
        lines.append(f"results in {self.out}: {LABELS}, {PAGE}, {RESULT}, {HISTORY}, {TENSORS}")
        return "\n".join(lines)


def run(
    request: Request, callbacks: Sequence[Callback] = (), progress: ProgressFunction | None = None
) -> Result | None:
    """Fit, then write everything; result.json comes last, so a folder that has it is complete.

    On several ranks all fit and the first one writes; the others have no result.
    """
    began = time.monotonic()
    data = rows_of(request, progress)
    data = replace(data, X=as_array(data.X))  # one object for all passes over the rows, so that files are read once
    model = PRODSC.from_flat(**request.parameters)
    known = request.known(data)
    model.check(data, **known)  # before anything is written
    if ranks.first() and (not (request.out / REQUEST).exists() or (request.out / RESULT).exists()):
        request.start()
    ranks.wait()
    try:
        model.fit(data, **known, callbacks=callbacks, checkpoint=request.out / CHECKPOINT)
        if not ranks.first():
            return None
        result = write_results(request, data, model, began)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"{stop or 'stopped'}; go on with: prodsc fit --resume {request.out}") from None
    except RankError as lost:
        raise RankError(f"{lost} Go on with the last checkpoint: prodsc fit --resume {request.out}") from lost
    (request.out / CHECKPOINT).unlink(missing_ok=True)
    return result


def rows_of(request: Request, progress: ProgressFunction | None = None) -> Source:
    """The rows that a request asks to cluster."""
    exclude = [] if request.known_labels is None else [request.known_labels]
    return open_source(str(request.file), labels=request.labels, exclude=exclude, progress=progress)


def write_results(request: Request, data: Source, model: PRODSC, began: float) -> Result:
    write_labels(request.out / LABELS, [(model.labels_, model.confidence_, model.outlier_score_)])
    model.save(request.out)
    files.write_text(request.out / HISTORY, history_csv(model.history_))
    found = scores(data.y, model.labels_) if data.y is not None else None
    notes = []
    if model.n_constant_features_:
        notes.append(f"{model.n_constant_features_} of {model.n_features_in_} columns are constant and say nothing.")
    if model.k_curve_ is not None:
        notes.append(f"n_clusters='auto' found {model.k_curve_.summary()}")
    result = Result(
        request.out,
        np.bincount(model.labels_, minlength=model.n_clusters_).tolist(),
        found,
        time.monotonic() - began,
        peak_memory_mb(),
        notes,
    )
    made = described(request, data, model, result)
    try:
        write_report(request, data, model, made)
    except MissingExtraError as missing:
        warnings.warn(f"{PAGE} is not written: {missing}", stacklevel=2)
    result = replace(result, report_seconds=time.monotonic() - began - result.seconds)
    files.write_json(request.out / RESULT, made | {"report_seconds": round(result.report_seconds, 3)})
    return result


def described(request: Request, data: Source, model: PRODSC, result: Result) -> dict[str, Any]:
    """result.json: what was done, to what, with what, and what came out."""
    return {
        "command": request.command,
        "recipe": request.recipe,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "file": data.location,
            "shape": list(data.X.shape),
            "dtype": str(data.X.dtype),
            "fingerprint": fingerprint(data.X),
        },
        "parameters": plain_parameters(model),
        "used": {
            "n_clusters": model.n_clusters_,
            "gamma": model.gamma_,
            **model.resolved_params_,
            "seed": model.seed_,
            "device": str(model.device_),
        },
        "clusters": {"sizes": result.sizes, "inertia": model.partition_.inertia},
        "scores": result.scores,
        "notes": result.notes,
        "seconds": round(result.seconds, 3),
        "peak_memory_mb": round(result.peak_memory_mb, 1),
        "versions": versions(),
        "machine": machine(),
    }


def write_report(request: Request, data: Source, model: PRODSC, made: dict[str, Any], **more: Any) -> None:
    """The page of a run; `more` is what only a later `prodsc report` can know, such as the images behind features."""
    from prodsc.report.fit_page import write_fit_page  # matplotlib is slow to import, and needed only here
    from prodsc.report.looks import open_looks

    more.setdefault("looks", open_looks(data))
    columns = "" if data.X.ndim != 2 else f" x {data.X.shape[1]:,}"
    facts = {
        "file": str(request.file),
        "rows x columns" if columns else "rows": f"{len(data.X):,}{columns}",
        "clusters": str(model.n_clusters_),
    }
    title = f"Clusters of {request.file.name}"
    names: dict[str, Any] = {"columns": data.columns, "classes": data.class_names}
    write_fit_page(request.out / PAGE, title, model, data.X, facts=facts, y=data.y, made=made, **names, **more)


def write_labels(path: Path, parts: Iterable[tuple[np.ndarray, ...]]) -> None:
    """labels.csv from what `labelled` gives, as it comes."""
    with files.atomic(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(label_lines(parts))


def label_lines(parts: Iterable[tuple[np.ndarray, ...]]) -> Iterator[str]:
    """A line for each row: its label, how sure it is, and its outlier score where the method has one."""
    row = 0
    for labels, *numbers in parts:
        if row == 0:
            yield ",".join(["row", "label", "confidence", "outlier"][: 2 + len(numbers)]) + "\n"
        for label, *values in zip(labels.tolist(), *(column.tolist() for column in numbers), strict=True):
            yield f"{row},{label}{''.join(f',{value:.4f}' for value in values)}\n"
            row += 1


def history_csv(history: dict[str, np.ndarray]) -> str:
    """An empty cell where a term was not active."""
    rows = zip(*(column.tolist() for column in history.values()), strict=True)
    body = (",".join("" if value != value else str(value) for value in row) + "\n" for row in rows)
    return ",".join(history) + "\n" + "".join(body)
