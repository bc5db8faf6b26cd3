"""The block-diagonal term with remembered eigenvectors against the exact one."""

import numpy as np
import pytest
import torch

from prodsc.core import linalg
from prodsc.core.losses import block_diagonal as exact
from prodsc.core.losses.block_diagonal import RememberedBlockDiagonal, energy, laplacian
from prodsc.core.self_expression import self_expression

N, K = 900, 6


def drifting_rows(t):
    """Unit rows of K noisy lines that turn slowly with t."""
    rng = np.random.default_rng(0)
    lines = rng.standard_normal((K, 8)) + 0.02 * t * rng.standard_normal((K, 8))
    Y = lines[np.arange(N) % K] + 0.3 * rng.standard_normal((N, 8))
    return torch.nn.functional.normalize(torch.from_numpy(Y))


def batch(t, size):
    return torch.from_numpy(np.sort(np.random.default_rng((1, t)).permutation(N)[:size]))


@pytest.mark.parametrize("size", [N, 450])
def test_remembered_follows_the_exact_term(monkeypatch, size):
    calls = []
    whole = linalg._lanczos
    monkeypatch.setattr(linalg, "_lanczos", lambda *args: calls.append(1) or whole(*args))
    term = RememberedBlockDiagonal(N, K)
    for t in range(12):
        rows = batch(t, size)
        A = self_expression(drifting_rows(t)[rows], 0.1).A
        value = float(term(A, rows))
        solved = len(calls)
        reference = float(exact(A, K))
        del calls[solved:]  # the reference solves too
        assert reference - 1e-9 <= value <= 1.02 * reference + 1e-9  # Ky Fan: never below
    assert len(calls) == 1 if size == N else len(calls) < 6  # while batches bring many rows never seen, more often


def test_gradient_is_that_of_the_exact_term():
    Y = drifting_rows(0).requires_grad_()
    term, rows = RememberedBlockDiagonal(N, K), torch.arange(N)
    for _ in range(2):  # the second call starts from the first
        (found,) = torch.autograd.grad(term(self_expression(Y, 0.1).A, rows), Y)
    (reference,) = torch.autograd.grad(exact(self_expression(Y, 0.1).A, K), Y)
    assert (found - reference).norm() <= 0.02 * reference.norm()


def test_exact_again_every_so_often():
    A = self_expression(drifting_rows(0), 0.1).A
    wrong = torch.linalg.eigh(laplacian(A))[1][:, -K:]  # eigenvectors too, but the largest: the residual is zero
    term, rows = RememberedBlockDiagonal(N, K, exact_every=2), torch.arange(N)
    term.memory, term.calls = wrong.float(), torch.tensor(2)
    assert float(term(A, rows)) == pytest.approx(float(exact(A, K)), abs=1e-6)


def test_batches_smaller_than_k():
    A = self_expression(drifting_rows(0)[:4], 0.1).A
    term = RememberedBlockDiagonal(N, K)
    assert float(term(A, torch.arange(4))) == pytest.approx(float(A.sum()) / 4)
    assert not term.memory.any()


def test_any_orthonormal_basis_is_an_upper_bound():
    A = self_expression(drifting_rows(0), 0.1).A
    U = torch.linalg.qr(torch.from_numpy(np.random.default_rng(2).standard_normal((N, K)))).Q
    assert energy(A, U) >= exact(A, K)
