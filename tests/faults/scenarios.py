"""The commands that are made to fail: their state before, the command, what a reader sees after, how to go on."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prodsc import export, files, load, make, read
from prodsc.bench import trials
from prodsc.bench.compare import compare
from prodsc.errors import Interrupted, ModelFileError
from prodsc.extract import Encoder, extract
from prodsc.manifest import replaced, verified
from prodsc.runs import run as runs
from prodsc.runs.past_run import open_run
from prodsc.runs.run import FitRequest, write_labels
from prodsc.training import checkpoint

TINY = {"n_clusters": 2, "hidden_size": 4, "n_components": 4, "epochs": 2, "warmup_steps": 1, "n_init": 1}
TINY |= {"start": "warm-up", "n_neighbors": 0, "device": "cpu"}
RNG = np.random.default_rng(0)
X = (np.repeat([[4.0], [-4.0]], 30, axis=0) + RNG.standard_normal((60, 5))).astype(np.float32)
IMAGES = RNG.integers(0, 256, (8, 3, 3), dtype=np.uint8)
SAME = ("labels.csv", "history.csv", "model.safetensors", "model.json")  # of a run; other files hold times


@dataclass(frozen=True)
class Scenario:
    """One command.

    Parameters
    ----------
    before : callable(folder)
        Makes the state in which the command is started; run once.
    act : callable(folder)
        The command.
    see : callable(folder)
        What a reader sees; equal before and after a command that did nothing. It must never raise.
    go_on : callable(folder)
        What a user does after a failure: the same command, or --resume. `see` is then as after an undisturbed command.
    between : callable(seen) -> bool
        Whether a reader may see this although it is neither old nor new, such as a run that is not finished.
    """

    before: Callable[[Path], Any]
    act: Callable[[Path], Any]
    see: Callable[[Path], Any]
    go_on: Callable[[Path], Any]
    between: Callable[[Any], bool] = lambda seen: False


def write_page(request: FitRequest, *_: Any) -> None:
    with replaced(request.out) as path_of:
        files.write_text(path_of(runs.PAGE), "<html>")


def run_here(trial: trials.Trial, folder: Path, budget_seconds: float | None) -> trials.Outcome:
    request = folder / f"{trial.key}.request.json"
    files.write_json(request, asdict(trial) | {"key": trial.key})
    trials.run_child(request)
    request.unlink()
    return trials.read_outcome(trial, folder) or trials.unreadable(trial, folder)


# For all scenarios: a checkpoint after each step, a page of one line, trials in this process.
SETTINGS = ((checkpoint, "SECONDS", 0.0), (runs, "write_report", write_page), (trials, "_run_once", run_here))


def quick() -> None:
    """Settings for all scenarios, in a process that does nothing else; a test gives `SETTINGS` to its monkeypatch."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for module, name, value in SETTINGS:
        setattr(module, name, value)


# ---- fit -------------------------------------------------------------------------------------------------------------


def request_of(folder: Path, **parameters: Any) -> FitRequest:
    return FitRequest(folder / "X.npz", folder / "run", None, TINY | parameters)


def with_rows(folder: Path) -> None:
    np.savez(folder / "X.npz", X=X)


def fit(folder: Path, **parameters: Any) -> None:
    request = request_of(folder, **parameters)
    request.prepare(overwrite=True)
    runs.run(request)


def with_a_run(folder: Path) -> None:
    with_rows(folder)
    fit(folder, n_clusters=3)


def with_a_stopped_run(folder: Path) -> None:
    with_rows(folder)
    save = checkpoint.save_checkpoint
    calls = []

    def stop(*words: Any) -> None:
        save(*words)
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt

    checkpoint.save_checkpoint = stop  # type: ignore[assignment]
    try:
        fit(folder)
    except Interrupted:
        pass
    finally:
        checkpoint.save_checkpoint = save


def resume(folder: Path) -> None:
    runs.run(FitRequest.read(folder / "run"), resume=True)


def see_run(folder: Path) -> Any:
    """The content of a finished run; "unfinished" for one that can be resumed, or that never began."""
    if not runs.is_finished(folder / "run"):
        return "unfinished"
    past = open_run(folder / "run")
    np.testing.assert_array_equal(past.model.labels_, past.labels)
    assert past.request.parameters["n_clusters"] == past.result["parameters"]["n_clusters"]
    return tuple(verified(folder / "run", name).read_bytes() for name in SAME)


def go_on_with_run(folder: Path) -> None:
    if see_run(folder) == "unfinished" and (folder / "run" / "run.json").exists():
        try:
            if FitRequest.read(folder / "run").parameters["n_clusters"] == 2:
                resume(folder)
                return
        except ModelFileError:  # run.json was not written yet
            pass
    if see_run(folder) == "unfinished" or open_run(folder / "run").request.parameters["n_clusters"] != 2:
        fit(folder)


# ---- save, predict, export -------------------------------------------------------------------------------------------


MODELS: dict[int, Any] = {}


def model_of(k: int) -> Any:
    if k not in MODELS:
        MODELS[k] = make("pro-dsc", **TINY | {"n_clusters": k}).fit(X)
    return MODELS[k]


def save(folder: Path, k: int = 2) -> None:
    model_of(k).save(folder / "model")


def see_model(folder: Path) -> Any:
    model = load(folder / "model")
    return model.n_clusters_, tuple(model.labels_.tolist())


def predict(folder: Path, k: int = 2) -> None:
    model = load(folder / "model")
    write_labels(folder / "labels.csv", model.labelled(read(folder / "X.npz")))


def with_a_prediction(folder: Path) -> None:
    with_rows(folder)
    save(folder, 3)
    predict(folder)
    save(folder, 2)


def see_labels(folder: Path) -> Any:
    return (folder / "labels.csv").read_bytes(), see_model(folder)


def with_exports(folder: Path) -> None:
    np.save(folder / "images.npy", IMAGES)
    np.save(folder / "X.npy", X[:8])
    export_all(folder, 0)


def export_all(folder: Path, turn: int = 1) -> None:
    labels = (np.arange(8) + turn) % 2
    export.folders(folder / "out", folder / "images.npy", labels, force=True)
    export.table(folder / "table.csv", str(folder / "X.npy"), labels, force=True)


def see_exports(folder: Path) -> Any:
    tree = {str(p.relative_to(folder)): p.read_bytes() for p in sorted((folder / "out").rglob("*")) if p.is_file()}
    listed = {line.split(",")[0] for line in (folder / "out" / "index.csv").read_text().splitlines()[1:]}
    assert {f"out/{name}" for name in listed} | {"out/index.csv"} == {*tree}, "half of an export"
    table = (folder / "table.csv").read_text()
    assert len(table.splitlines()) == 9, "half of a table"
    return tuple(tree.items()), table


# ---- compare, extract ------------------------------------------------------------------------------------------------


def compare_two(folder: Path) -> None:
    table = compare(folder / "X.npz", None, ["k-means", "pro-dsc"], seeds=1, n_clusters=2, out=folder / "out",
                    parameters={"pro-dsc": {k: v for k, v in TINY.items() if k != "n_clusters"}})  # fmt: skip
    text = "\n".join(f"{s.method} {s.cell('neighbours')} {s.failures}" for s in table.summaries)
    files.write_text(folder / "table.txt", text)


def see_text(folder: Path) -> Any:
    return (folder / "table.txt").read_text() if (folder / "table.txt").exists() else None


def first_pixels(image: Any) -> torch.Tensor:
    return torch.from_numpy(np.array(image, dtype=np.float32)).flatten()[:4]


def with_pictures(folder: Path) -> None:
    np.save(folder / "images.npy", np.repeat(IMAGES[..., None], 3, axis=-1))


def extract_to(suffix: str) -> Callable[[Path], Any]:
    def act(folder: Path) -> None:
        encoder = Encoder("first pixels", first_pixels, torch.stack)
        extract(folder / "images.npy", encoder, folder / f"f{suffix}", batch_size=3, workers=1, overwrite=True)

    return act


def see_features(suffix: str) -> Callable[[Path], Any]:
    def see(folder: Path) -> Any:
        path = folder / f"f{suffix}"
        if not path.exists():
            return None
        return read(path).X.tobytes()

    return see


# An export is several files, of which `see_exports` checks each; a table may say that a trial has failed.
SCENARIOS = {
    "fit": Scenario(with_rows, fit, see_run, go_on_with_run, lambda seen: seen == "unfinished"),
    "fit --overwrite": Scenario(with_a_run, fit, see_run, go_on_with_run, lambda seen: seen == "unfinished"),
    "fit --resume": Scenario(with_a_stopped_run, resume, see_run, go_on_with_run, lambda seen: seen == "unfinished"),
    "save": Scenario(lambda folder: save(folder, 3), save, see_model, save),
    "predict": Scenario(with_a_prediction, predict, see_labels, predict),
    "export": Scenario(with_exports, export_all, see_exports, export_all, lambda seen: True),
    "compare": Scenario(with_rows, compare_two, see_text, compare_two, lambda seen: "failed 1/1" in seen),
    "extract .npy": Scenario(with_pictures, extract_to(".npy"), see_features(".npy"), extract_to(".npy")),
    "extract .npz": Scenario(with_pictures, extract_to(".npz"), see_features(".npz"), extract_to(".npz")),
}
