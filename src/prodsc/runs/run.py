"""One run: fit a file, write a folder of results. An interrupted run continues from its last checkpoint."""

import csv
import io
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from prodsc import files, manifest, ranks
from prodsc.core.metrics import scores
from prodsc.errors import (
    InputError,
    Interrupted,
    MissingExtraError,
    ModelFileError,
    OutputError,
    RankError,
    reason_of,
)
from prodsc.estimators.model_file import ABOUT, TENSORS, plain_parameters
from prodsc.estimators.naming import are_names
from prodsc.pro_dsc.diagnosis import Diagnosis, diagnose
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.progress import ProgressFunction
from prodsc.sources.choice import NO_CHOICE, ColumnChoice
from prodsc.sources.door import open_source
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.readers import read_array, read_labels, read_pairs
from prodsc.sources.rows import as_array
from prodsc.sources.source import Source
from prodsc.spreadsheet import without_formula
from prodsc.system import machine, peak_memory_mb, versions
from prodsc.training import Callback

REQUEST, CHECKPOINT, RESULT = "run.json", "checkpoint.safetensors", "result.json"
LABELS, HISTORY, PAGE, NAMES = "labels.csv", "history.csv", "report.html", "names.json"
ALL_FILES = (REQUEST, CHECKPOINT, RESULT, LABELS, HISTORY, PAGE, NAMES, TENSORS, ABOUT, manifest.MANIFEST)
DATA = "rows"  # the key of their fingerprint among the digests of a request


@dataclass(frozen=True)
class NoteRules:
    """When the summary of a run says that its clusters are doubtful."""

    largest_share: float = 0.99  # of the rows in one cluster
    mean_confidence: float = 0.7  # of all rows: one group cut into three has .45 to .68, clear clusters have 1


NOTE_RULES = NoteRules()


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
    inputs: dict[str, str] = field(default_factory=dict)  # digests of what is read; version 0.1 has none
    choice: ColumnChoice = NO_CHOICE  # which columns are what
    quick: bool = False  # a first look

    def known(self, source: Source) -> dict[str, Any]:
        """The constraints on the rows of `source` that are given to `fit`."""
        labels = None if self.known_labels is None else read_labels(source.path, self.known_labels)
        if labels is not None and source.kept is not None:
            labels = labels[source.kept]
        pairs = {"must_link": self.must_link, "cannot_link": self.cannot_link}
        return {"known_labels": labels} | {name: path and read_pairs(path) for name, path in pairs.items()}

    @classmethod
    def read(cls, folder: Path) -> Self:
        """The request of an interrupted run."""
        if is_finished(folder):
            with suppress(OSError):  # a kill at the very end may have left its last steps to do
                manifest.recover(folder)
                (folder / CHECKPOINT).unlink(missing_ok=True)
            raise OutputError(f"{folder} holds a finished run; there is nothing to resume.")
        try:
            return cls.from_json(files.read_json(manifest.verified(folder, REQUEST)), folder)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ModelFileError(f"{folder} holds no run to resume ({REQUEST} is not there).") from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ModelFileError(
                f"{folder / REQUEST} is damaged ({reason_of(error)}). Start again with a new --out."
            ) from error

    @classmethod
    def from_json(cls, content: dict[str, Any], folder: Path) -> Self:
        """The request in the content of run.json."""
        choice = ColumnChoice.from_json(dict(content).get("choice", {}))
        request = cls(**(content | {"file": Path(content["file"]), "out": folder, "choice": choice}))
        texts = [request.labels, request.recipe, request.known_labels, request.must_link, request.cannot_link]
        if not all(text is None or isinstance(text, str) for text in (*texts, *request.inputs.values())):
            raise TypeError("a name or path in it is no text")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PRODSC.from_flat(**request.parameters)  # raises if there is no such parameter
        return request

    def prepare(self, overwrite: bool) -> None:
        """Raise OutputError when the folder must not be written; nothing is written yet."""
        if self.out.exists() and not self.out.is_dir():
            raise OutputError(f"--out {self.out} is a file. Name a folder that does not exist yet.")
        if not self.out.is_dir() or not any(self.out.iterdir()):
            return
        if not overwrite:
            stopped = (self.out / REQUEST).exists() and not is_finished(self.out)
            hint = f"continue with: prodsc fit --resume {self.out}" if stopped else "or give --overwrite"
            raise OutputError(f"--out {self.out} exists and is not empty. Choose another folder, {hint}.")
        ours = files_of_run(self.out)
        inputs = [self.file, self.labels, self.known_labels, self.must_link, self.cannot_link]
        for name in (*ALL_FILES, *sorted(ours)):
            path = self.out / name
            if not os.path.lexists(path):
                continue
            if name not in ours:
                raise OutputError(
                    f"{path} was not written by a run of prodsc ({manifest.MANIFEST} does not list it), so --overwrite "
                    "does not replace it. Choose another --out."
                )
            if files.is_one_of(path, inputs):
                raise OutputError(f"{path} is an input of this command and is never replaced. Choose another --out.")

    def resolved(self, source: Source) -> Self:
        """The request with absolute paths and the digests of its inputs."""
        paths: dict[str, Any] = {name: _absolute(getattr(self, name), source) for name in ("labels", "known_labels")}
        for name in ("must_link", "cannot_link"):
            path = getattr(self, name)
            paths[name] = path and str(Path(os.path.expanduser(path)).resolve())
        request = replace(self, **paths)
        return replace(request, inputs=request.digests(source))

    def digests(self, source: Source) -> dict[str, str]:
        """What must not change until the run is finished: the rows, and the files of constraints."""
        named = (self.known_labels, self.must_link, self.cannot_link)
        return {DATA: fingerprint(source.X)} | {
            path: files.sha256(Path(path)) for path in named if path is not None and os.path.isfile(path)
        }

    def check_inputs(self, source: Source) -> None:
        """Raise an InputError if an input has changed since the run was started."""
        now = self.digests(source)
        for name, digest in self.inputs.items():
            if now.get(name) != digest:
                what = self.file if name == DATA else name
                raise InputError(
                    f"{what} holds other data than when the run in {self.out} was started. Put the file back as it "
                    "was, or start anew with --overwrite."
                )

    def start(self) -> None:
        """Make the folder, write run.json and remove the results of an earlier run."""
        before = files_of_run(self.out)
        try:
            (self.out / CHECKPOINT).unlink(missing_ok=True)
        except NotADirectoryError as error:
            raise files.unwritable(self.out, error) from error
        content = vars(self) | {"file": str(self.file), "out": str(self.out), "choice": self.choice.to_json()}
        with manifest.replaced(self.out, removing=before - {CHECKPOINT}) as path_of:
            files.write_json(path_of(REQUEST), content)


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a finished run."""
    listed = manifest.read_manifest(folder)
    return (folder / RESULT).is_file() if listed is None else RESULT in listed.digests


def files_of_run(folder: Path) -> set[str]:
    """Names of the files in a folder that runs of prodsc wrote.

    Parameters
    ----------
    folder : Path
        The folder of a run, or any other.

    Returns
    -------
    set of str
        Those of its manifest. A run of version 0.1 has none: its files are known by their names.
    """
    listed = manifest.read_manifest(folder)
    if listed is not None:
        return listed.ours | ({CHECKPOINT} if REQUEST in listed.digests else set())
    try:
        FitRequest.from_json(files.read_json(folder / REQUEST), folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()
    return set(ALL_FILES)


def _absolute(labels: str | None, source: Source) -> str | None:
    """A path of labels as an absolute one; the name of an array or column of the input stays."""
    path = None if labels is None else Path(os.path.expanduser(labels))
    if path is None or not path.is_file():
        return labels
    with suppress(InputError):
        if source.path is not None and read_array(source.path, str(labels)) is not None:
            return labels
    return str(path.resolve())


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
    names: list[str] | None = None  # of the clusters
    verdict: dict[str, Any] = field(default_factory=dict)  # of `diagnose`

    def summary(self) -> str:
        """Some lines for the terminal."""
        lines = [f"{sum(self.sizes)} rows in {len(self.sizes)} clusters of sizes {self._sizes()}"]
        lines += self._named()
        if self.scores is not None:
            lines.append("  ".join(f"{name} {value:.4f}" for name, value in self.scores.items()))
        lines += self.verdict.get("sentences", [])
        lines += [f"note: {note}" for note in self.notes]
        page = f" and {self.report_seconds:.1f} s for the page" if self.report_seconds else ""
        lines.append(f"{self.seconds:.1f} s{page}, peak memory {self.peak_memory_mb:.0f} MB")
        lines.append(f"results in {self.out}: {', '.join(self.written())}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        content = {name: value for name, value in vars(self).items() if value is not None}
        return content | {"out": str(self.out), "n_clusters": len(self.sizes), "files": self.written()}

    def written(self) -> list[str]:
        """The files of the run that a person looks for."""
        return [name for name in (LABELS, PAGE, RESULT, HISTORY, TENSORS) if (self.out / name).exists()]

    def _sizes(self, most: int = 12) -> str:
        return ", ".join(map(str, self.sizes[:most])) + (", ..." if len(self.sizes) > most else "")

    def _named(self, most: int = 12) -> list[str]:
        if self.names is None:
            return []
        wide = max(len(str(size)) for size in self.sizes)
        lines = [
            f"  {c:>3}  {size:>{wide}}  {name}"
            for c, (size, name) in enumerate(zip(self.sizes, self.names, strict=True))
        ]
        return lines[:most] + ([f"  and {len(lines) - most} more"] if len(lines) > most else [])


def run(
    request: FitRequest,
    callbacks: Sequence[Callback] = (),
    progress: ProgressFunction | None = None,
    *,
    resume: bool = False,
    report: bool = True,
    page_progress: ProgressFunction | None = None,
) -> FitResult | None:
    """Fit and write the folder of results.

    result.json is written last, so a folder that has it is complete.

    Parameters
    ----------
    request : FitRequest
        What to fit.
    callbacks : sequence of Callback, optional
        For the training loop.
    progress : ProgressFunction, optional
        Called while the file is converted.
    resume : bool, default=False
        Whether to continue the interrupted run that the request was read from. Otherwise files of an earlier run in
        the folder are removed.
    report : bool, default=True
        Whether to make the page.
    page_progress : ProgressFunction, optional
        Called with (0, 1) before the page is made and with (1, 1) after it.

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
    model = PRODSC.from_flat(**(quick_parameters(len(data.X)) if request.quick else {}) | request.parameters)
    known = request.known(data)
    model.check(data, **known)  # before anything is written
    if resume:
        request.check_inputs(data)
    else:
        request = request.resolved(data)
    if ranks.first():
        if resume:
            manifest.recover(request.out)
            files.remove_orphans(request.out, *ALL_FILES)
        else:
            request.start()
    ranks.wait()
    try:
        with _stopped_by_sigterm():
            model.fit(data, **known, callbacks=callbacks, checkpoint=request.out / CHECKPOINT)
            if not ranks.first():
                return None
            result = write_results(request, data, model, start, report, page_progress or (lambda done, total: None))
    except KeyboardInterrupt as stop:
        raise Interrupted(f"{stop or 'stopped'}; continue with: prodsc fit --resume {request.out}") from None
    except RankError as lost:
        raise RankError(f"{lost} Continue with the last checkpoint: prodsc fit --resume {request.out}") from lost
    (request.out / CHECKPOINT).unlink(missing_ok=True)
    return result


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """Within this context SIGTERM has the effect of Ctrl-C. On several ranks it has its own meaning."""
    if ranks.size() > 1 or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt("stopped by SIGTERM")

    handler = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def rows_of(request: FitRequest, progress: ProgressFunction | None = None) -> Source:
    """The rows that a request asks to cluster."""
    exclude = [] if request.known_labels is None else [request.known_labels]
    return open_source(
        str(request.file), labels=request.labels, exclude=exclude, progress=progress, choice=request.choice
    )


def columns_of_run(folder: Path) -> tuple[ColumnChoice, list[str]]:
    """What the columns of new rows are, by the fit in a folder.

    Parameters
    ----------
    folder : Path
        The folder of a run, or of a model alone.

    Returns
    -------
    choice : ColumnChoice
        As at the fit; missing values are filled with the medians of the rows of the fit.
    exclude : list of str
        Columns of labels at the fit.
    """
    try:
        request = FitRequest.from_json(files.read_json(folder / REQUEST), folder)
        fill_values = files.read_json(folder / RESULT)["data"].get("fill_values")
    except (OSError, ValueError, KeyError, TypeError):  # a model without a run
        return NO_CHOICE, []
    choice = replace(request.choice, columns=(), impute=fill_values or request.choice.impute)  # names are matched
    return choice, [name for name in (request.labels, request.known_labels) if name is not None]


def write_results(
    request: FitRequest,
    data: Source,
    model: PRODSC,
    start: float,
    report: bool = True,
    page_progress: ProgressFunction = lambda done, total: None,
) -> FitResult:
    """Write labels, model, history, page and result.json; `start` is when the run began."""
    name_clusters(model, data)
    with manifest.replaced(request.out) as path_of:
        parts = [(model.labels_, model.confidence_, model.outlier_score_)]
        write_labels(path_of(LABELS), parts, RowNames(_readable_ids(data), data.kept, shown_names(model)))
        files.write_text(path_of(HISTORY), history_csv(model.history_))
    model.save(request.out)
    known_scores = scores(data.y, model.clusters_) if data.y is not None else None
    notes = size_notes(model.clusters_, model.confidence_)
    if model.n_constant_features_:
        notes.append(
            f"{model.n_constant_features_} of {model.n_features_in_} columns are constant and carry no information."
        )
    notes += model.remarks_
    if model.noise is not None:
        n_noise = int((model.labels_ < 0).sum())
        notes.append(f"{n_noise:,} rows ({n_noise / len(model.labels_):.1%}) are noise: their label is -1.")
    if model.scaling_reason_ and model.scaling_ != "unit":
        notes.append(f"rows are scaled with scaling='{model.scaling_}': {model.scaling_reason_}.")
    if model.k_curve_ is not None:
        notes.append(f"n_clusters='auto' found {model.k_curve_.summary()}")
    if request.quick:
        notes.append("this was a quick look; fit again without --quick before you use the labels.")
    diagnosis = diagnose(model, data)
    result = FitResult(
        request.out,
        np.bincount(model.clusters_, minlength=model.n_clusters_).tolist(),
        known_scores,
        time.monotonic() - start,
        peak_memory_mb(),
        notes,
        names=shown_names(model),
        verdict=diagnosis.to_dict(),
    )
    content = result_content(request, data, model, result)
    if report:
        page_progress(0, 1)
    if report and (problem := _try_report(request, data, model, content, diagnosis)):
        warnings.warn(problem, stacklevel=2)
        content["notes"] = [*notes, problem]
    if report:
        page_progress(1, 1)
        result = replace(result, report_seconds=time.monotonic() - start - result.seconds)
    with manifest.replaced(request.out) as path_of:
        files.write_json(path_of(RESULT), content | {"report_seconds": round(result.report_seconds, 3)})
    return result


def name_clusters(model: PRODSC, data: Source, **shown: Any) -> None:
    """Name the clusters of a fit; what prevents it is told, for the labels are worth keeping without names."""
    try:
        model.name_clusters(data, ids=_readable_ids(data), **shown)
    except (InputError, OSError, ValueError) as error:
        warnings.warn(f"the clusters have no names ({reason_of(error)}).", stacklevel=2)


def shown_names(model: PRODSC) -> list[str] | None:
    """The names of the clusters if they say more than numbers."""
    return list(model.cluster_names_) if are_names(model.cluster_names_) else None


def _readable_ids(data: Source) -> list[str] | None:
    """The names of the rows; None if they cannot be read, for the labels are worth keeping without them."""
    try:
        return data.ids
    except (InputError, OSError, ValueError) as error:
        warnings.warn(f"the names of the rows are left out ({reason_of(error)}).", stacklevel=2)
        return None


def _try_report(request: FitRequest, data: Source, model: PRODSC, content: dict[str, Any], diagnosis: Diagnosis) -> str:
    """Write the page; whatever prevents it is returned as a sentence, for the fit is worth keeping without it."""
    try:
        size = page_size(content["seconds"], request.quick)
        write_report(request, data, model, content, diagnosis=diagnosis, **size)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(f"{stop or 'stopped'} while {PAGE} was made; {LABELS} and the model are kept") from None
    except MissingExtraError as missing:
        return f"{PAGE} is not written: {missing}"
    except Exception as error:
        return f"{PAGE} is not written ({reason_of(error)}). Make it later with: prodsc report {request.out}"
    return ""


def size_notes(labels: np.ndarray, confidence: np.ndarray, rules: NoteRules = NOTE_RULES) -> list[str]:
    """What to say about a partition that may not be one of the data.

    Parameters
    ----------
    labels, confidence : ndarray of shape (n,)
        The cluster of each row and the confidence of it.
    rules : NoteRules
        When to say something.

    Returns
    -------
    list of str
    """
    largest = np.bincount(labels).max() / len(labels)
    mean = float(np.mean(confidence))
    notes = []
    if largest >= rules.largest_share:
        notes.append(
            f"one cluster holds {100 * largest:.1f} % of the rows; the others may be outliers rather than clusters. "
            "Look at their rows on the page."
        )
    if mean < rules.mean_confidence:
        notes.append(
            f"the labels have a mean confidence of {100 * mean:.0f} %: clusters overlap, or one large group was cut to "
            "give as many clusters as were asked for. Compare with `prodsc k FILE`."
        )
    return notes


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
            **({} if data.fill_values is None else {"fill_values": data.fill_values}),
        },
        "parameters": plain_parameters(model),
        "used": {
            "n_clusters": model.n_clusters_,
            "gamma": model.gamma_,
            **model.resolved_params_,
            "seed": model.seed_,
            "device": str(model.device_),
        },
        "clusters": {
            "sizes": result.sizes,
            "names": model.cluster_names_,
            "inertia": getattr(model.partition_, "inertia", None),
        },
        "scores": result.scores,
        "verdict": result.verdict,
        "notes": result.notes,
        "seconds": round(result.seconds, 3),
        "peak_memory_mb": round(result.peak_memory_mb, 1),
        "versions": versions(),
        "machine": machine(),
    }


def quick_parameters(n_rows: int, steps: int = 20, batch_size: int = 512) -> dict[str, Any]:
    """Parameters of a first look: a short joint phase, which only refines what the start has found.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    steps : int
        Of the joint phase.
    batch_size : int
        Rows of a step, as the default of features has it.

    Returns
    -------
    dict
    """
    return {"epochs": max(1, steps // max(1, n_rows // batch_size))}


def page_size(
    fit_seconds: float, quick: bool, row_seconds: float = 0.003, figure_seconds: float = 4.0
) -> dict[str, Any]:
    """How much the page of a fit may show, so that it does not take longer than the fit.

    Parameters
    ----------
    fit_seconds : float
        What the fit took.
    quick : bool
        Whether it was a quick look, whose page has no figures of the theory.
    row_seconds : float
        What t-SNE takes for a row, of some hundred to 2,000, on a slow core.
    figure_seconds : float
        What the figures of the theory take there.

    Returns
    -------
    dict
        Options of `render_fit_page`: rows that t-SNE places itself, at most for two fifths of the time, and whether
        there are figures, at most for half of it. `prodsc report` makes the page with all.
    """
    embedded = int(min(2000, max(300, 0.4 * fit_seconds / row_seconds)))
    return {"max_embedded": embedded, "theory": not quick and fit_seconds >= 2 * figure_seconds}


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
    title = f"{'A quick look at clusters' if request.quick else 'Clusters'} of {request.file.name}"
    more |= {"facts": facts, "y": data.y, "made": content, "columns": data.columns, "classes": data.class_names}
    if manifest.read_manifest(request.out) is None:  # a run of version 0.1
        write_fit_page(request.out / PAGE, title, model, data.X, **more)
        return
    with manifest.replaced(request.out) as path_of:
        write_fit_page(path_of(PAGE), title, model, data.X, **more)


@dataclass(frozen=True)
class RowNames:
    """What labels.csv says about rows and clusters beside their numbers."""

    ids: Sequence[str] | None = None
    kept: np.ndarray | None = None  # the number of each row in the file, if some were left out
    clusters: Sequence[str] | None = None  # a name for each cluster


NO_NAMES = RowNames()
NOISE_NAME = "noise"


def write_labels(path: Path, parts: Iterable[tuple[np.ndarray, ...]], names: RowNames = NO_NAMES) -> None:
    """Write labels.csv from what `labelled` yields."""
    with files.atomic(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.writelines(label_lines(parts, names))


def label_lines(parts: Iterable[tuple[np.ndarray, ...]], names: RowNames = NO_NAMES) -> Iterator[str]:
    """A line for each row: its label and, where there are any, id, name, confidence and outlier score.

    Parameters
    ----------
    parts : iterable of tuples of arrays
        Labels and, where the method has them, confidence and outlier score.
    names : RowNames
        Of rows and clusters.
    """
    line = _CsvLine()
    done = 0
    for labels, *numbers in parts:
        if done == 0:
            head = ["row", *(["id"] if names.ids is not None else []), "label"]
            head += ["name"] if names.clusters is not None else []
            yield line([*head, *["confidence", "outlier"][: len(numbers)]])
        for label, *values in zip(labels.tolist(), *(column.tolist() for column in numbers), strict=True):
            cells = [str(done if names.kept is None else names.kept[done])]
            cells += [] if names.ids is None else [without_formula(names.ids[done])]
            cells += [str(label)]
            if names.clusters is not None:
                cells.append(without_formula(names.clusters[label]) if label >= 0 else NOISE_NAME)
            yield line([*cells, *(f"{value:.4f}" for value in values)])
            done += 1


class _CsvLine:
    """Cells as one line of CSV."""

    def __init__(self) -> None:
        self.buffer = io.StringIO()
        self.writer = csv.writer(self.buffer, lineterminator="\n")

    def __call__(self, cells: Sequence[str]) -> str:
        self.buffer.seek(0)
        self.buffer.truncate()
        self.writer.writerow(cells)
        return self.buffer.getvalue()


def history_csv(history: dict[str, np.ndarray]) -> str:
    """The history as CSV; a cell is empty where a term was not active."""
    rows = zip(*(column.tolist() for column in history.values()), strict=True)
    body = (",".join("" if value != value else str(value) for value in row) + "\n" for row in rows)
    return ",".join(history) + "\n" + "".join(body)
