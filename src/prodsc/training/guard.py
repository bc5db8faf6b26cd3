"""A guard against silent collapse: it checks the no-collapse margin and the rank of Z during training."""

import math
import warnings
from dataclasses import dataclass

import torch

from prodsc.choices import OnCollapse
from prodsc.core import theory
from prodsc.errors import CollapseError
from prodsc.training.loop import Callback, Training


@dataclass(frozen=True)
class GuardRules:
    """When the guard checks, and what counts as a collapse."""

    every: int = 10  # steps between checks: eight power iterations are then below 2 % of the cost of the steps
    safe_share: float = 0.8  # of the bound, to which "adjust" lowers gamma
    recovering: float = 1.05  # times its lowest value, above which the rank is rising again
    collapsed_share: float = 0.5  # of its first value, below which the rank means collapse, even below the bound


GUARD_RULES = GuardRules()


class CollapseGuard(Callback):
    """Checks before the first joint step and every few steps after it; the numbers go into the history.

    There are two signals: gamma above the bound of Theorem 2 (a collapse is possible), and an effective rank that has
    fallen to half of its value at the start of the joint phase and does not rise again (a collapse is happening).
    Below the bound it must rise again by theory, so it has half of the phase for that. The theorem is about
    the coding rate, so without that term only the rank is checked.

    Parameters
    ----------
    on_collapse : {"warn", "adjust", "raise", "ignore"}
        What to do: warn once, lower gamma, raise a `CollapseError`, or nothing.
    eps : float
        Precision of the coding rate.
    rules : GuardRules
        When to check, and what counts as a collapse.
    """

    columns = ("gamma", "lambda_max", "margin", "effective_rank")

    def __init__(self, on_collapse: OnCollapse, eps: float, rules: GuardRules = GUARD_RULES):
        self.on_collapse, self.eps, self.rules = on_collapse, eps, rules
        self._first_rank: float | None = None
        self._lowest_rank = math.inf  # at earlier checks
        self._warned: set[str] = set()
        self._measured: dict[str, float] = {}

    def on_step(self, training: Training) -> None:
        """Write the numbers of the last check, and the gamma that was used, into the history."""
        if "self_expression" in training.current.terms:
            gamma = training.objective.weights["self_expression"]
            training.history.annotate(gamma=gamma, **self._measured)
            self._measured = {}

    def on_batch(self, training: Training) -> None:
        """Check before the step: momentum would carry on a first step far beyond the bound."""
        phase, step = training.current, training.step + 1
        if "self_expression" not in phase.terms or self.on_collapse == "ignore":
            return
        if step % self.rules.every and step not in (1, phase.steps):
            return
        gamma = training.objective.weights["self_expression"]
        Z, C = training.batch.Z.detach(), training.batch.C.detach()  # made with gradients: the loss uses them next
        with torch.no_grad():
            rank = float(theory.effective_rank(Z))
            if self._first_rank is None:
                self._first_rank, self._lowest_rank = self._earlier_ranks(training) or (rank, rank)
            self._measured = {"effective_rank": rank}
            may_recover = False
            if "coding_rate" in phase.terms:
                n, d = Z.shape
                lambda_max = float(theory.lambda_max(C))
                margin = theory.no_collapse_margin(gamma, n, d, self.eps, lambda_max)
                self._measured |= {"lambda_max": lambda_max, "margin": margin}
                may_recover = margin >= 1 and step <= phase.steps // 2
                if margin < 1:
                    safe = min(margin * gamma, theory.gamma_safe(n, d, self.eps))  # lambda_max may still grow to 4
                    self._react_to_margin(training, gamma, margin, self.rules.safe_share * safe)
        # In the first steps of a healthy fit the rank falls too, because C is far from its end; later it rises again.
        before, self._lowest_rank = self._lowest_rank, min(self._lowest_rank, rank)
        limit = self.rules.collapsed_share * self._first_rank
        if max(rank, before) < limit and rank <= self.rules.recovering * before and not may_recover:
            self._warn_or_raise(
                "rank",
                f"the representation is collapsing: its effective rank fell from {self._first_rank:.1f} to {rank:.1f} "
                f"by step {step} of {phase.name}. Lower gamma (now {gamma:.4g}), or give on_collapse='adjust'.",
            )

    def _react_to_margin(self, training: Training, gamma: float, margin: float, safe: float) -> None:
        """Lower gamma, or report that it is beyond the bound."""
        if self.on_collapse == "adjust":
            training.objective.weights["self_expression"] = safe
            return
        self._warn_or_raise(
            "margin",
            f"gamma={gamma:.4g} is {1 / margin:.3g} times the bound below which the representation cannot collapse "
            f"({margin * gamma:.4g}). Use gamma='auto', a gamma below the bound, or on_collapse='adjust'.",
        )

    def _warn_or_raise(self, signal: str, message: str) -> None:
        """Raise the error, or warn once per signal."""
        if self.on_collapse == "raise":
            raise CollapseError(message)
        if signal not in self._warned:
            self._warned.add(signal)
            warnings.warn(message, UserWarning, stacklevel=2)

    @staticmethod
    def _earlier_ranks(training: Training) -> tuple[float, float] | None:
        """The first and the lowest rank of a run that was resumed."""
        ranks = training.history.columns()["effective_rank"]
        known = ranks[ranks == ranks]
        return (float(known[0]), float(known.min())) if len(known) else None
