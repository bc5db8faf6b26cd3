"""`tune(X, n_clusters=k)`: search the settings of PRO-DSC without labels. A stopped search can be continued."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prodsc._version import __version__
from prodsc.bench.data import TrialData, content_digest, open_trial_data, results_folder
from prodsc.bench.label_free import BY_LABELS, BY_NEIGHBOURS, tuning_score
from prodsc.bench.summary import to_csv, to_markdown
from prodsc.bench.trials import Limits, Outcome, Status, Trial, ignore, read_outcome, run_trials
from prodsc.core.theory import gamma_safe
from prodsc.errors import InputError, ParameterError, TrainingError, require
from prodsc.estimators.parameters import PARAMETER_BY_NAME, check_parameters
from prodsc.estimators.scoring import LabelFreeScorer
from prodsc.pro_dsc.config import resolve_config
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.random import sorted_subset
from prodsc.sources.source import RowsInput

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True)
class SearchSpace:
    """Lower and upper end of each setting; all are searched on a log scale."""

    eta: tuple[float, float] = (0.05, 0.3)
    gamma_share: tuple[float, float] = (0.2, 1.0)  # of the largest gamma for which no data collapse
    learning_rate: tuple[float, float] = (3e-4, 1e-2)
    beta: tuple[float, float] = (50.0, 800.0)
    n_components: tuple[int, int] = (32, 256)
    hidden_size: tuple[int, int] = (256, 1024)
    warmup_steps: tuple[int, int] = (20, 200)

    def suggest(self, trial: "optuna.Trial") -> dict[str, float]:
        """A point of the space, as Optuna's sampler suggests it."""
        return {
            name: (trial.suggest_int if isinstance(ends[0], int) else trial.suggest_float)(name, *ends, log=True)
            for name, ends in vars(self).items()
        }


SPACE = SearchSpace()
SEARCHED = tuple(vars(SPACE))


@dataclass(frozen=True)
class ScoredTrial:
    """One point of the search space and its score. Number 0 is the defaults."""

    number: int
    point: dict[str, float]  # empty for the defaults
    outcome: Outcome
    score: float  # -inf for a failure

    @property
    def name(self) -> str:
        return str(self.number) if self.point else f"{self.number} (defaults)"


TuneCallback = Callable[[int, Trial, ScoredTrial | None], None]  # number, trial, and its score once it has ended


@dataclass(frozen=True)
class TuningResult:
    """All trials; `best` is the one with the highest score, `recipe()` its settings for `prodsc fit --recipe`."""

    trials: list[ScoredTrial]
    by: str
    data: str
    n_clusters: int

    @cached_property
    def best(self) -> ScoredTrial:
        finished = [trial for trial in self.trials if np.isfinite(trial.score)]
        if not finished:
            reason = self.trials[0].outcome.reason if self.trials else "there was no time"
            raise TrainingError(f"none of {len(self.trials)} trials finished: {reason.rstrip('.')}.")
        return max(finished, key=lambda trial: trial.score)

    @property
    def parameters(self) -> dict[str, Any]:
        """Of the best trial, beyond the defaults."""
        return self.best.outcome.trial.parameters

    def header(self) -> list[str]:
        known = ["ACC"] if any("ACC" in trial.outcome.numbers for trial in self.trials) else []
        return ["trial", "score", *known, *SEARCHED, "seconds", "failed"]

    def rows(self) -> list[list[str]]:
        """Every cell as text, best trial first."""
        order = sorted(self.trials, key=lambda trial: -trial.score)
        return [[self._cell(trial, column) for column in self.header()] for trial in order]

    def _cell(self, trial: ScoredTrial, column: str) -> str:
        texts = {"trial": trial.name, "failed": trial.outcome.reason}
        if column in texts:
            return texts[column]
        numbers = trial.outcome.numbers | trial.point | {"score": trial.score}
        value = numbers.get(column, np.nan)
        return f"{value:.4g}" if np.isfinite(value) else ""

    def csv(self) -> str:
        return to_csv(self.header(), self.rows())

    def markdown(self) -> str:
        return f"Score: {self.by}.\n\n" + to_markdown(self.header(), self.rows())

    def recipe(self) -> str:
        """The best settings as TOML."""
        about = {
            "title": f"tuned on {Path(self.data).name}",
            "data": f"{Path(self.data).name}, {self.n_clusters} clusters",
            "source": f"prodsc tune: the best of {len(self.trials)} trials by {self.by}",
        }
        lines = ["[about]", *(f"{name} = {json.dumps(value)}" for name, value in about.items()), "", "[parameters]"]
        return "\n".join([*lines, *(f"{name} = {json.dumps(value)}" for name, value in self.parameters.items())]) + "\n"


def tune(
    X: RowsInput,
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
    on_trial: TuneCallback = ignore,
) -> TuningResult:
    """Search the settings of PRO-DSC by a score that needs no labels; the first trial is the defaults.

    Parameters
    ----------
    X : array-like, path or name of a data set
        The rows to cluster.
    y : array-like, optional
        Known classes, shown beside the score and not used, unless `with_labels`.
    n_clusters : int
        Number of clusters.
    trials : int, default=30
        Settings to try.
    minutes : float, optional
        Stop after this time.
    rows : int, optional
        Fit at most so many rows in a trial, a random sample.
    parameters : mapping, optional
        Parameters that are not searched.
    random_state : int, default=0
        Seed of the fits and of the search.
    with_labels : bool, default=False
        Search by ACC. This gives an upper limit, not a result.
    limits : Limits, optional
        Time and memory of one trial.
    out : path, optional
        Folder for results; the same call continues a search that was stopped.
    on_trial : callable(number, trial, scored), optional
        Called when a trial starts (scored None) and when it has ended.

    Returns
    -------
    TuningResult

    Raises
    ------
    ParameterError
        If a parameter is outside its rule.
    MissingExtraError
        If Optuna is not installed.
    """
    optuna = require("optuna", extra="tune", caller="prodsc tune")
    fixed = {"n_clusters": n_clusters, **(parameters or {})}
    check_parameters(PRODSC, fixed, "tune")
    if isinstance(n_clusters, str) or n_clusters < 2:
        raise ParameterError(f"tune: n_clusters must be a whole number of at least 2, got {n_clusters!r}.")
    if trials < 1:
        raise ParameterError(f"tune: trials must be at least 1, got {trials}.")
    with results_folder(out, "prodsc-tune-") as folder:
        data = open_trial_data(X, y, folder)
        task = SearchTask(data.source, fixed, rows, random_state, with_labels, limits or Limits())
        search = Search(optuna, task, data, folder)
        search.run(trials, minutes, on_trial)
        return search.result()


@dataclass(frozen=True)
class SearchTask:
    """Everything a search depends on; another task in the same folder is another study of Optuna."""

    source: str
    fixed: dict[str, Any]
    rows: int | None
    seed: int
    with_labels: bool
    limits: Limits
    space: dict[str, tuple[float, float]] = field(default_factory=lambda: vars(SPACE))

    @cached_property
    def digest(self) -> str:
        depends_on = [asdict(self), __version__, content_digest(self.source)]
        return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:16]


class Search:
    """Optuna suggests points and remembers scores, trials measure them; the same point is never run twice."""

    def __init__(self, optuna: Any, task: SearchTask, data: TrialData, folder: Path):
        self.optuna, self.task, self.folder = optuna, task, folder
        if task.with_labels and data.y is None:
            raise InputError("tuning with labels needs labels; give y, or tune without.")
        X = data.X if task.rows is None else data.X[sorted_subset(len(data.X), task.rows)]
        self.shape = X.shape
        self.scorer = None if task.with_labels else LabelFreeScorer(X)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        journal = optuna.storages.journal.JournalFileBackend(str(folder / "study.log"))
        self.study = optuna.create_study(
            study_name=task.digest,
            storage=optuna.storages.JournalStorage(journal),
            direction="maximize",
            load_if_exists=True,
        )

    def run(self, trials: int, minutes: float | None, on_trial: TuneCallback) -> None:
        """Run trials until there are `trials` of them or the time is up."""
        end = None if minutes is None else time.monotonic() + 60 * minutes
        states = self.optuna.trial.TrialState
        while len(done := self.study.get_trials(states=(states.COMPLETE, states.FAIL))) < trials:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0 and done:
                return
            number, point = self._next_point()
            trial = self.trial(point)
            on_trial(number, trial, None)
            budget = left if done else None  # the first trial always ends
            (outcome,) = run_trials([trial], self.folder / "trials", budget_seconds=budget)
            if outcome.status in (Status.STOPPED, Status.NOT_RUN):  # the next call continues this trial
                return
            scored = ScoredTrial(number, point, outcome, self._score(outcome))
            if outcome.finished:
                self.study.tell(number, scored.score)
            else:
                self.study.tell(number, state=states.FAIL)
            on_trial(number, trial, scored)

    def _score(self, outcome: Outcome) -> float:
        return tuning_score(outcome, self.scorer, self.task.with_labels)

    def _next_point(self, n_random: int = 10) -> tuple[int, dict[str, float]]:
        """The trial that was stopped, or a new one; the first is the defaults, the next `n_random` are random."""
        states = self.optuna.trial.TrialState
        for stopped in self.study.get_trials(states=(states.RUNNING,)):
            if stopped.number == 0 or len(stopped.params) == len(SEARCHED):
                return stopped.number, dict(stopped.params)
            self.study.tell(stopped.number, state=states.FAIL)  # stopped while its point was being suggested
        number = len(self.study.get_trials(deepcopy=False))
        # A seed for each number, so that a search that was stopped continues as if it had not been.
        sampler = self.optuna.samplers.TPESampler(seed=self.task.seed + number, n_startup_trials=n_random)
        self.study.sampler = sampler
        asked = self.study.ask()
        return asked.number, {} if asked.number == 0 else SPACE.suggest(asked)

    def trial(self, point: Mapping[str, float]) -> Trial:
        """The trial at a point; fixed parameters win."""
        task = self.task
        searched = settings(point, task.fixed, self.shape)
        parameters = task.fixed | {name: value for name, value in searched.items() if name not in task.fixed}
        more: dict[str, Any] = {"options": {"split": "all"}, "rows": task.rows, "limits": task.limits}
        return Trial(task.source, "pro-dsc", task.seed, parameters, **more)

    def result(self) -> TuningResult:
        """The trials of this and earlier calls, from their files."""
        trials = []
        for asked in self.study.get_trials(deepcopy=False):
            outcome = read_outcome(self.trial(asked.params), self.folder / "trials")
            if outcome is not None and asked.state.is_finished():
                trials.append(ScoredTrial(asked.number, dict(asked.params), outcome, self._score(outcome)))
        by = BY_LABELS if self.task.with_labels else BY_NEIGHBOURS
        return TuningResult(trials, by, self.task.source, self.task.fixed["n_clusters"])


def settings(point: Mapping[str, float], fixed: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Parameters of the estimator at a point of the search space.

    Parameters
    ----------
    point : mapping
        A value for each name of `SearchSpace`; empty for the defaults.
    fixed : mapping
        Parameters that are not searched.
    shape : tuple of int
        Of the rows.

    Returns
    -------
    dict
        `gamma_share` becomes gamma.
    """
    parameters = {name: value for name, value in point.items() if name in PARAMETER_BY_NAME}
    if "gamma_share" in point:
        params = PRODSC.from_flat(**(parameters | dict(fixed))).flat_params()
        config = resolve_config(params, shape, params["n_clusters"])
        bound = gamma_safe(min(shape[0], config.batch_size), config.n_components, config.eps)
        parameters["gamma"] = point["gamma_share"] * bound
    return parameters
