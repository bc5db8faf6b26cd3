"""When the representation cannot collapse: the paper's theorems as functions of numbers."""

from prodsc.theory.conditions import gamma_bound, gamma_safe

__all__ = ["gamma_bound", "gamma_safe"]
