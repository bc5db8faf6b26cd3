import pytest

from prodsc.core.theory import gamma_bound, gamma_safe


@pytest.mark.parametrize("n", [128, 1024, 5000])
def test_the_batch_size_cancels(n):
    """Table of the method: gamma * lambda_max < d / (eps (1 + eps)) for d <= n, lambda_max <= 4."""
    assert gamma_safe(n, 128, 0.1) == pytest.approx(128 / (4 * 0.1 * 1.1))


def test_undivided_form():
    alpha, n, d, lambda_max = 1.25, 1024, 128, 2.0
    assert gamma_bound(alpha, n, d, lambda_max) == pytest.approx(alpha**2 / (lambda_max * (alpha + d / n)))
    assert gamma_bound(alpha, 64, 128, lambda_max) == pytest.approx(alpha**2 / (lambda_max * (alpha + 1)))
