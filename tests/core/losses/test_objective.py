import torch

from prodsc.core.losses import Objective, Term


def test_adds_weighted_terms_and_reports_them_unweighted():
    objective = Objective(Term("a", 2.0, lambda x: x), Term("b", 3.0, lambda x: x * x))
    report = objective(torch.tensor(4.0), only=("a", "b"))
    assert float(report.total) == 2 * 4 + 3 * 16
    assert {name: float(value) for name, value in report.parts.items()} == {"a": 4.0, "b": 16.0}


def test_a_term_that_is_not_asked_for_is_not_computed():
    def fail(_):
        raise AssertionError("computed")

    objective = Objective(Term("a", 1.0, lambda x: x), Term("b", 1.0, fail))
    assert float(objective(torch.tensor(4.0), only=("a",)).total) == 4.0
