"""One run: fit a file, write a folder of results. An interrupted run continues from its last checkpoint."""

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
class FitRequest:
    """What a run fits; kept as run.json in its folder so that a stopped run can be continued."""

    file: Path
    out: Path
    labels: str | None
    parameters: dict[str, Any]
    recipe: str | None = None
    command: str = ""
    known_labels: str | None = None  # labels of a few rows: an array or column of the file, or another file
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
        return cls.from_json(content, folder)

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path) -> Self:
        """The request in the content of run.json."""
        return cls(**(content | {"file": Path(content["file"]), "out": folder}))

    def prepare(self, overwrite: bool) -> None:
        """Raise OutputError when the folder must not be written; nothing is written yet."""
        if self.out.exists() and not self.out.is_dir():
            raise OutputError(f"--out {self.out} is a file. Name a folder that does not exist yet.")
        if self.out.is_dir() and any(self.out.iterdir()) and not overwrite:
            stopped = (self.out / REQUEST).exists() and not (self.out / RESULT).exists()
            hint = f"continue with: prodsc fit --resume {self.out}" if stopped else "or give --overwrite"
            raise OutputError(f"--out {self.out} exists and is not empty. Choose another folder, {hint}.")

    def start(self) -> None:
        """Make the folder and remove the results of an earlier run."""
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            for name in ALL_FILES:
                (self.out / name).unlink(missing_ok=True)
        except OSError as error:
            raise files.unwritable(self.out, error) from error
        content = asdict(self) | {"file": str(self.file), "out": str(self.out)}
        files.write_json(self.out / REQUEST, content)


@dataclass(frozen=True)
class FitResult:
    """What a run reports."""

    out: Path
    sizes: list[int]
    scores: dict[str, float] | None
    seconds: float
    peak_memory_mb: float
    notes: list[str] = field(default_factory=list)
    report_seconds: float = 0.0  # not part of `seconds`

    def summary(self) -> str:
        """Some lines for the terminal."""
        sizes = ", ".join(map(str, self.sizes[:12])) + (", ..." if len(self.sizes) > 12 else "")
        lines = [f"{sum(self.sizes)} rows in {len(self.sizes)} clusters of sizes {sizes}"]
        if self.scores is not None:
            lines.append("  ".join(f"{name} {value:.4f}" for name, value in self.scores.items()))
        lines += [f"note: {note}" for note in self.notes]
        page = f" and {self.report_seconds:.1f} s for the page" if self.report_seconds else ""
        lines.append(f"{self.seconds:.1f} s{page}, peak memory {self.peak_memory_mb:.0f} MB")
        lines.append(f"results in {self.out}: {LABELS}, {PAGE}, {RESULT}, {HISTORY}, {TENSORS}")
        return "\n".join(lines)


def run(
    request: FitRequest, callbacks: Sequence[Callback] = (), progress: ProgressFunction | None = None
) -> FitResult | None:
    """Fit and write the folder of results.

    result.json is written last, so a folder that has it is complete.

    Parameters
    ----------
    request : FitRequest
        What to fit; its folder may hold the checkpoint of an interrupted run.
    callbacks : sequence of Callback, optional
        For the training loop.
    progress : ProgressFunction, optional
        Called while the file is converted.

    Returns
    -------
    FitResult or None
        None on all ranks but the first, which writes the results.

    Raises
    ------
    Interrupted
        On Ctrl-C, after a checkpoint was written.
    """
    start = time.monotonic()
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
        result = write_results(request, data, model, start)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"{stop or 'stopped'}; continue with: prodsc fit --resume {request.out}") from None
    except RankError as lost:
        raise RankError(f"{lost} Continue with the last checkpoint: prodsc fit --resume {request.out}") from lost
    (request.out / CHECKPOINT).unlink(missing_ok=True)
    return result


def rows_of(request: FitRequest, progress: ProgressFunction | None = None) -> Source:
    """The rows that a request asks to cluster."""
    exclude = [] if request.known_labels is None else [request.known_labels]
    return open_source(str(request.file), labels=request.labels, exclude=exclude, progress=progress)


def write_results(request: FitRequest, data: Source, model: PRODSC, start: float) -> FitResult:
    """Write labels, model, history, page and result.json; `start` is when the run began."""
    write_labels(request.out / LABELS, [(model.labels_, model.confidence_, model.outlier_score_)])
    model.save(request.out)
    files.write_text(request.out / HISTORY, history_csv(model.history_))
    known_scores = scores(data.y, model.labels_) if data.y is not None else None
    notes = []
    if model.n_constant_features_:
        notes.append(
            f"{model.n_constant_features_} of {model.n_features_in_} columns are constant and carry no information."
        )
    if model.k_curve_ is not None:
        notes.append(f"n_clusters='auto' found {model.k_curve_.summary()}")
    result = FitResult(
        request.out,
        np.bincount(model.labels_, minlength=model.n_clusters_).tolist(),
        known_scores,
        time.monotonic() - start,
        peak_memory_mb(),
        notes,
    )
    content = result_content(request, data, model, result)
    try:
        write_report(request, data, model, content)
    except MissingExtraError as missing:
        warnings.warn(f"{PAGE} is not written: {missing}", stacklevel=2)
    result = replace(result, report_seconds=time.monotonic() - start - result.seconds)
    files.write_json(request.out / RESULT, content | {"report_seconds": round(result.report_seconds, 3)})
    return result


def result_content(request: FitRequest, data: Source, model: PRODSC, result: FitResult) -> dict[str, Any]:
    """The content of result.json: command, data, parameters, scores, cost and versions."""
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


def write_report(request: FitRequest, data: Source, model: PRODSC, content: dict[str, Any], **more: Any) -> None:
    """Write the page of a run; `content` is that of result.json, `more` goes to `write_fit_page`."""
    from prodsc.report.fit_page import write_fit_page  # matplotlib is slow to import, and needed only here
    from prodsc.report.previews import open_previews

    more.setdefault("previews", open_previews(data))
    columns = "" if data.X.ndim != 2 else f" x {data.X.shape[1]:,}"
    facts = {
        "file": str(request.file),
        "rows x columns" if columns else "rows": f"{len(data.X):,}{columns}",
        "clusters": str(model.n_clusters_),
    }
    title = f"Clusters of {request.file.name}"
    names: dict[str, Any] = {"columns": data.columns, "classes": data.class_names}
    write_fit_page(request.out / PAGE, title, model, data.X, facts=facts, y=data.y, made=content, **names, **more)


def write_labels(path: Path, parts: Iterable[tuple[np.ndarray, ...]]) -> None:
    """Write labels.csv from what `labelled` yields."""
    with files.atomic(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(label_lines(parts))


def label_lines(parts: Iterable[tuple[np.ndarray, ...]]) -> Iterator[str]:
    """A line for each row: its label and, where the method has them, confidence and outlier score."""
    row = 0
    for labels, *numbers in parts:
        if row == 0:
            yield ",".join(["row", "label", "confidence", "outlier"][: 2 + len(numbers)]) + "\n"
        for label, *values in zip(labels.tolist(), *(column.tolist() for column in numbers), strict=True):
            yield f"{row},{label}{''.join(f',{value:.4f}' for value in values)}\n"
            row += 1


def history_csv(history: dict[str, np.ndarray]) -> str:
    """The history as CSV; a cell is empty where a term was not active."""
    rows = zip(*(column.tolist() for column in history.values()), strict=True)
    body = (",".join("" if value != value else str(value) for value in row) + "\n" for row in rows)
    return ",".join(history) + "\n" + "".join(body)
