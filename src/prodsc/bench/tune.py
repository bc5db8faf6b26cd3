"""`tune(X, n_clusters=k)`: search PRO-DSC's settings without labels; a search that was stopped goes on."""

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prodsc.bench.compare import data_source
from prodsc.bench.measures import sample, scored_part
from prodsc.bench.summary import to_csv, to_markdown
from prodsc.bench.trials import Limits, Outcome, Trial, finished, run_trials
from prodsc.bench.unlabelled import BY_LABELS, BY_NEIGHBOURS, Unlabelled, tuning_score
from prodsc.core.theory import gamma_safe
from prodsc.errors import InputError, ParameterError, TrainingError, require
from prodsc.estimators.parameters import PARAMETER_BY_NAME, check_parameters
from prodsc.pro_dsc.config import resolve_config
from prodsc.pro_dsc.estimator import PRODSC

if TYPE_CHECKING:
    import optuna

JOURNAL = "study.log"  # Optuna's own file: what was asked and what came of it
EVERYWHERE = 10  # trials at random before Optuna looks where it was good

# What matters and where to look; gamma is searched as a share of the bound below which no data collapse.
RANGES: dict[str, tuple[float, float]] = {
    "eta": (0.05, 0.3),
    "gamma_share": (0.2, 1.0),
    "learning_rate": (3e-4, 1e-2),
    "beta": (50.0, 800.0),
}
WHOLE: dict[str, tuple[int, int]] = {"n_components": (32, 256), "hidden_size": (256, 1024), "warmup_steps": (20, 200)}
SEARCHED = (*RANGES, *WHOLE)

Watch = Callable[[int, Trial, "Tried | None"], None]


@dataclass(frozen=True)
class Tried:
    """One setting and what came of it. Number 0 is the defaults."""

    number: int
    place: dict[str, float]  # in the space that is searched; empty for the defaults
    outcome: Outcome
    score: float  # what the search goes by; -inf for a failure

    @property
    def name(self) -> str:
        return str(self.number) if self.place else f"{self.number} (defaults)"


@dataclass(frozen=True)
class Tuning:
    """All trials; `best` is the one with the highest score, `recipe()` its settings for `prodsc fit --recipe`."""

    tried: list[Tried]
    by: str
    data: str
    n_clusters: int

    @cached_property
    def best(self) -> Tried:
        done = [one for one in self.tried if np.isfinite(one.score)]
        if not done:
            why = self.tried[0].outcome.failed if self.tried else "there was no time"
            raise TrainingError(f"none of {len(self.tried)} trials finished: {why}")
        return max(done, key=lambda one: one.score)

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the best trial, beyond the defaults."""
        return self.best.outcome.trial.parameters

    def heads(self) -> list[str]:
        known = ["ACC"] if any("ACC" in one.outcome.numbers for one in self.tried) else []
        return ["trial", "score", *known, *SEARCHED, "seconds", "failed"]

    def rows(self) -> list[list[str]]:
        """Best first, every cell as text."""
        order = sorted(self.tried, key=lambda one: -one.score)
        return [[self._cell(one, head) for head in self.heads()] for one in order]

    def _cell(self, one: Tried, head: str) -> str:
        own = {"trial": one.name, "failed": one.outcome.failed}
        if head in own:
            return own[head]
        value = one.score if head == "score" else one.place.get(head, one.outcome.numbers.get(head, np.nan))
        return f"{value:.4g}" if np.isfinite(value) else ""

    def csv(self) -> str:
        return to_csv(self.heads(), self.rows())

    def markdown(self) -> str:
        return f"Score: {self.by}.\n\n" + to_markdown(self.heads(), self.rows())

    def recipe(self) -> str:
        """The best settings as TOML."""
        about = {
            "title": f"tuned on {Path(self.data).name}",
            "data": f"{Path(self.data).name}, {self.n_clusters} clusters",
            "source": f"prodsc tune: the best of {len(self.tried)} trials by {self.by}",
        }
        lines = ["[about]", *(f"{name} = {json.dumps(value)}" for name, value in about.items()), "", "[parameters]"]
        return "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in self.parameters.items())]) + "\n"


def tune(
    X: Any,
    y: Any = None,
    *,
    n_clusters: int,
    trials: int = 30,
    minutes: float | None = None,
    rows: int | None = None,
    parameters: Mapping[str, Any] | None = None,
    random_state: int = 0,
    with_labels: bool = False,
    limits: Limits | None = None,
    out: str | Path | None = None,
    watch: Watch = lambda number, trial, tried: None,
) -> Tuning:
    """Search the settings of PRO-DSC by a score that needs no labels; the first trial is the defaults.

    X: an array, a path or a named data set; y only scores, unless `with_labels` makes ACC what is searched for, which
    nobody with a real problem can. `parameters` stay as given, `rows` bounds how many rows a trial fits. The search
    ends after `trials` or `minutes`. Given a folder `out`, it stays there, and the same call goes on with it.
    """
    optuna = require("optuna", extra="tune", caller="prodsc tune")
    fixed = {"n_clusters": n_clusters, **(parameters or {})}
    check_parameters(PRODSC, fixed, "tune")
    if isinstance(n_clusters, str) or n_clusters < 2:
        raise ParameterError(f"tune: n_clusters must be a whole number of at least 2, got {n_clusters!r}.")
    if trials < 1:
        raise ParameterError(f"tune: trials must be at least 1, got {trials}.")
    folder = Path(tempfile.mkdtemp(prefix="prodsc-tune-")) if out is None else Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        search = Search(optuna, data_source(X, y, folder), fixed, rows, random_state, with_labels, folder)
        search.run(trials, minutes, limits, watch)
        return search.result()
    finally:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)


class Search:
    """Optuna asks and remembers, trials answer. Whatever is asked again has the same name and is not run again."""

    def __init__(
        self,
        optuna: Any,
        source: str,
        fixed: dict[str, Any],
        rows: int | None,
        seed: int,
        with_labels: bool,
        folder: Path,
    ):
        self.optuna, self.source, self.fixed, self.seed = optuna, source, fixed, seed
        self.rows, self.with_labels, self.folder = rows, with_labels, folder
        X, y = sample(scored_part(source, "all"), rows)
        if with_labels and y is None:
            raise InputError("tuning with labels needs labels; give y, or tune without.")
        self.shape = X.shape
        self.scorer = None if with_labels else Unlabelled(X)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder / JOURNAL)))
        question = json.dumps([source, fixed, rows, seed, with_labels, RANGES, WHOLE], sort_keys=True)
        self.study = optuna.create_study(  # another question in the same folder is another study
            study_name=hashlib.sha256(question.encode()).hexdigest()[:16],
            storage=storage,
            direction="maximize",
            load_if_exists=True,
        )

    def run(self, trials: int, minutes: float | None, limits: Limits | None, watch: Watch) -> None:
        ends = None if minutes is None else time.monotonic() + 60 * minutes
        states = self.optuna.trial.TrialState
        while len(done := self.study.get_trials(states=(states.COMPLETE, states.FAIL))) < trials:
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0 and done:
                return
            number, place = self._next()
            trial = self.trial(place)
            watch(number, trial, None)
            outcome = run_trials([trial], self.folder / "trials", limits=limits, budget_seconds=left if done else None)[
                0
            ]
            if outcome.failed.startswith("not "):  # the time is up: this trial goes on at the next call
                return
            tried = Tried(number, place, outcome, tuning_score(outcome, self.scorer, self.with_labels))
            if outcome.failed:
                self.study.tell(number, state=states.FAIL)
            else:
                self.study.tell(number, tried.score)
            watch(number, trial, tried)

    def _next(self) -> tuple[int, dict[str, float]]:
        """The trial that was stopped, or a new one; the first one is the defaults."""
        states = self.optuna.trial.TrialState
        for stopped in self.study.get_trials(states=(states.RUNNING,)):
            if stopped.number == 0 or len(stopped.params) == len(SEARCHED):
                return stopped.number, dict(stopped.params)
            self.study.tell(stopped.number, state=states.FAIL)  # stopped while it was being asked for
        number = len(self.study.get_trials(deepcopy=False))
        self.study.sampler = self.optuna.samplers.TPESampler(  # by number, so that a stopped search repeats nothing
            seed=self.seed + number, n_startup_trials=EVERYWHERE
        )
        asked = self.study.ask()
        return asked.number, {} if asked.number == 0 else place_of(asked)

    def trial(self, place: Mapping[str, float]) -> Trial:
        return Trial(
            self.source,
            "pro-dsc",
            self.seed,
            self.fixed
            | {name: v for name, v in settings(place, self.fixed, self.shape).items() if name not in self.fixed},
            options={"split": "all"},
            rows=self.rows,
        )

    def result(self) -> Tuning:
        """From the files alone, also of trials of earlier calls."""
        tried = []
        for asked in self.study.get_trials(deepcopy=False):
            outcome = finished(self.trial(asked.params), self.folder / "trials")
            if outcome is not None and asked.state.is_finished():
                score = tuning_score(outcome, self.scorer, self.with_labels)
                tried.append(Tried(asked.number, dict(asked.params), outcome, score))
        by = BY_LABELS if self.with_labels else BY_NEIGHBOURS
        return Tuning(tried, by, self.source, self.fixed["n_clusters"])


def place_of(asked: "optuna.Trial") -> dict[str, float]:
    """A point of the space, as the sampler suggests it."""
    place: dict[str, float] = {name: asked.suggest_float(name, *ends, log=True) for name, ends in RANGES.items()}
    return place | {name: asked.suggest_int(name, *ends, log=True) for name, ends in WHOLE.items()}


def settings(place: Mapping[str, float], fixed: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Parameters of the estimator at a point of the space."""
    found = {name: value for name, value in place.items() if name in PARAMETER_BY_NAME}
    if "gamma_share" in place:
        params = PRODSC.from_flat(**(found | dict(fixed))).flat_params()
        config = resolve_config(params, shape, params["n_clusters"])
        safe = gamma_safe(min(shape[0], config.batch_size), config.n_components, config.eps)
        found["gamma"] = place["gamma_share"] * safe
    return found
