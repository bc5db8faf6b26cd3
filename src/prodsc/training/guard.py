"""A fit that cannot collapse silently: watches the no-collapse margin and the rank of Z while training."""

import math
import warnings
from typing import Literal, get_args

import torch

from prodsc.core import theory
from prodsc.errors import CollapseError
from prodsc.training.loop import Callback, Training

OnCollapse = Literal["warn", "adjust", "raise", "ignore"]
ON_COLLAPSE: tuple[str, ...] = get_args(OnCollapse)
EVERY = 10  # steps between looks: eight power iterations are then below 2 % of the steps' cost
SHARE = 0.8  # of the bound that "adjust" brings gamma back to
RECOVERS = 1.05  # times its lowest: a rank above this is on its way back up
FALLEN = 0.5  # of its rank at the first look: below this Z is collapsing, whatever theory says


class CollapseGuard(Callback):
    """Looks before the first joint step and every few after it; the numbers go into the history.

    Two signals: gamma above the bound of Theorem 2 (collapse is possible), and an effective rank that has fallen to
    half of what it was when the joint phase began and is not coming back (collapse is happening). Below the bound
    theory says that it will come back, so it has half of the phase for that.
    The theorem speaks of the coding rate, so without that term only the rank is watched.
    """

    columns = ("gamma", "lambda_max", "margin", "effective_rank")

    def __init__(self, on_collapse: OnCollapse, eps: float):
        self.on_collapse, self.eps = on_collapse, eps
        self._first_rank: float | None = None
        self._lowest = math.inf  # rank at earlier looks
        self._said: set[str] = set()
        self._seen: dict[str, float] = {}

    def on_step(self, training: Training) -> None:
        """Write down what was seen and used."""
        if "self_expression" in training.current.terms:
            gamma = training.objective.weights["self_expression"]
            training.history.annotate(gamma=gamma, **self._seen)
            self._seen = {}

    def on_batch(self, training: Training) -> None:
        """Before the step: a first step far beyond the bound would be one too many, as momentum carries it on."""
        phase, step = training.current, training.step + 1
        if "self_expression" not in phase.terms or self.on_collapse == "ignore":
            return
        if step % EVERY and step not in (1, phase.steps):
            return
        gamma = training.objective.weights["self_expression"]
        Z, C = training.batch.Z.detach(), training.batch.C.detach()  # made with gradients: the loss uses them next
        with torch.no_grad():
            rank = float(theory.effective_rank(Z))
            if self._first_rank is None:
                self._first_rank, self._lowest = self._remembered(training) or (rank, rank)
            self._seen = {"effective_rank": rank}
            waits = False
            if "coding_rate" in phase.terms:
                n, d = Z.shape
                lambda_max = float(theory.lambda_max(C))
                margin = theory.no_collapse_margin(gamma, n, d, self.eps, lambda_max)
                self._seen |= {"lambda_max": lambda_max, "margin": margin}
                waits = margin >= 1 and step <= phase.steps // 2
                if margin < 1:
                    safe = min(margin * gamma, theory.gamma_safe(n, d, self.eps))  # lambda_max may still grow to 4
                    self._beyond(training, gamma, margin, SHARE * safe)
        # The first steps of a healthy fit dip too, because C is far from its end; a collapse does not come back up.
        before, self._lowest = self._lowest, min(self._lowest, rank)
        fallen = rank < FALLEN * self._first_rank and before < FALLEN * self._first_rank
        if fallen and rank <= RECOVERS * before and not waits:
            self._act(
                "rank",
                f"the representation is collapsing: its effective rank fell from {self._first_rank:.1f} to {rank:.1f} "
                f"by step {step} of {phase.name}. Lower gamma (now {gamma:.4g}), or give on_collapse='adjust'.",
            )

    def _beyond(self, training: Training, gamma: float, margin: float, safe: float) -> None:
        if self.on_collapse == "adjust":
            training.objective.weights["self_expression"] = safe
            return
        self._act(
            "margin",
            f"gamma={gamma:.4g} is {1 / margin:.3g} times the bound below which the representation cannot collapse "
            f"({margin * gamma:.4g}). Use gamma='auto', a gamma below the bound, or on_collapse='adjust'.",
        )

    def _act(self, signal: str, sentence: str) -> None:
        if self.on_collapse == "raise":
            raise CollapseError(sentence)
        if signal not in self._said:
            self._said.add(signal)
            warnings.warn(sentence, UserWarning, stacklevel=2)

    @staticmethod
    def _remembered(training: Training) -> tuple[float, float] | None:
        """The first and the lowest rank of a run that was resumed."""
        ranks = training.history.columns()["effective_rank"]
        known = ranks[ranks == ranks]
        return (float(known[0]), float(known.min())) if len(known) else None
