"""The terms of the deep baselines against naive re-derivations, and their gradients, in float64."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from prodsc import losses


def unit_rows(n, d, seed=0):
    Z = np.random.default_rng(seed).standard_normal((n, d))
    return torch.from_numpy(Z / np.linalg.norm(Z, axis=1, keepdims=True))


def memberships(n, seed=1):
    Pi = np.random.default_rng(seed).uniform(0.1, 1, (n, n))
    return torch.from_numpy(Pi / Pi.sum(1, keepdims=True))


def _reference_rate_of_parts(Z, Pi, eps):
    """One column of Pi after the other, by the eigenvalues of a weighted covariance."""
    n, d = Z.shape
    total = 0.0
    for j in range(n):
        t = Pi[:, j].sum()
        covariance = sum(Pi[i, j] * np.outer(Z[i], Z[i]) for i in range(n))
        total += t / (2 * n) * np.log(np.linalg.eigvalsh(np.eye(d) + d / (t * eps) * covariance)).sum()
    return total


@pytest.mark.parametrize(("n", "d"), [(12, 4), (4, 7)])
def test_coding_rate_parts(n, d):
    Z, Pi = unit_rows(n, d), memberships(n)
    reference = _reference_rate_of_parts(Z.numpy(), Pi.numpy(), 0.1)
    assert float(losses.coding_rate_parts(Z, Pi, 0.1)) == pytest.approx(reference, abs=1e-9)


def test_coding_rate_parts_gradient():
    Z, Pi = unit_rows(7, 4).requires_grad_(), memberships(7).requires_grad_()
    assert gradcheck(lambda Z, Pi: losses.coding_rate_parts(Z, Pi, 0.1), (Z, Pi))


def test_one_part_has_the_rate_of_the_whole():
    Z = unit_rows(9, 3)
    whole = -losses.coding_rate(Z, losses.scale(9, 3, 0.1))
    torch.testing.assert_close(losses.coding_rate_parts(Z, torch.full((9, 9), 1 / 9.0).double(), 0.1), whole)


def test_coding_length():
    Z, labels = unit_rows(10, 3), torch.tensor([0, 0, 0, 0, 2, 2, 2, 2, 2, 2])
    reference = 0.0
    for part, m_j in ((Z[:4], 4), (Z[4:], 6)):
        reference += (m_j + 3) / 2 * float(torch.logdet(torch.eye(3) + 3 / (0.1 * m_j) * part.T @ part))
        reference -= m_j * np.log(m_j / 10)
    assert float(losses.coding_length(Z, labels, 0.1)) == pytest.approx(reference)


def probabilities(h, n, k, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).dirichlet(np.ones(k), (h, n)))


def _reference_temi(s, t_other, t, p, exponent):
    """Head by head and pair by pair."""
    h, n, k = s.shape
    found = np.zeros(h)
    for a in range(h):
        for i in range(n):
            w = np.mean([sum(t[b, i, c] * t_other[b, i, c] for c in range(k)) for b in range(h)])
            inside = sum((s[a, i, c] * t_other[a, i, c]) ** exponent / p[a, c] for c in range(k))
            found[a] -= w * np.log(inside) / n
    return found


def test_temi():
    s, t, t_other = (probabilities(2, 5, 3, seed) for seed in range(3))
    p = probabilities(1, 2, 3, 7)[0]
    found = losses.temi(s, t_other, losses.sameness(t, t_other), p, 0.6)
    np.testing.assert_allclose(found, _reference_temi(s.numpy(), t_other.numpy(), t.numpy(), p.numpy(), 0.6))
    w = losses.sameness(t, t_other)
    assert gradcheck(lambda s: losses.temi(s, t_other, w, p, 0.6), s.requires_grad_())
