"""float64 gradcheck of every term and of the coefficients."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from prodsc.core import losses
from prodsc.core.self_expression import self_expression, sinkhorn


def rows(n, d, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d))).requires_grad_()


def unit(X):
    return torch.nn.functional.normalize(X)


@pytest.mark.parametrize(("n", "d"), [(9, 4), (4, 9)])
def test_coding_rate(n, d):
    assert gradcheck(lambda X: losses.coding_rate(unit(X), losses.scale(n, d, 0.1)), rows(n, d))


def test_nuclear_spread():
    assert gradcheck(lambda X: losses.nuclear_spread(unit(X)), rows(8, 4))


@pytest.mark.parametrize("form", ["symmetric", "directed"])
def test_self_expression(form):
    def value(X, Y):
        return losses.self_expression(unit(X), self_expression(unit(Y), 0.3, form=form).C)

    assert gradcheck(value, (rows(8, 4), rows(8, 3, seed=1)))


@pytest.mark.parametrize("k", [1, 3, 8])
def test_block_diagonal_matches_finite_differences(k):
    assert gradcheck(lambda Y: losses.block_diagonal(self_expression(unit(Y), 0.3).A, k), rows(8, 3))


@pytest.mark.parametrize("norm", [losses.l1, losses.frobenius, losses.nuclear])
@pytest.mark.parametrize("form", ["symmetric", "directed"])
def test_norms(norm, form):
    assert gradcheck(lambda Y: norm(self_expression(unit(Y), 0.3, form=form).C), rows(7, 3))


@pytest.mark.parametrize("half_steps", [1, 2, 3, 6])
def test_sinkhorn(half_steps):
    def value(Y):
        K = (unit(Y) @ unit(Y).T).abs() / 0.3
        return sinkhorn(K, half_steps, stop_column_gradient=False)

    assert gradcheck(value, rows(6, 3))


def test_published_sinkhorn_stops_the_gradient_of_column_scalings():
    Y = rows(6, 3)
    weight = torch.from_numpy(np.random.default_rng(3).standard_normal((6, 6)))
    grads = []
    for stop in (True, False):
        K = (unit(Y) @ unit(Y).T).abs() / 0.3
        grads.append(torch.autograd.grad((weight * sinkhorn(K, 3, stop_column_gradient=stop)).sum(), Y)[0])
    assert not torch.allclose(*grads)


def test_reconstruction():
    X = torch.rand(2, 1, 3, 3, dtype=torch.float64)
    assert gradcheck(lambda X_hat: losses.reconstruction(X, X_hat), torch.rand_like(X).requires_grad_())


def test_links():
    R = torch.tensor(np.random.default_rng(2).integers(-1, 2, (7, 7)), dtype=torch.int8)
    R = R.triu(1) + R.triu(1).T
    R[3] = R[:, 3] = 0
    C = rows(7, 7, seed=1).detach().requires_grad_()
    assert gradcheck(lambda Y: losses.links(unit(Y), C.detach(), R), rows(7, 3))
    assert gradcheck(lambda Y: self_expression(unit(Y), 0.3, R=R).C, rows(7, 3))
    Y = unit(rows(7, 3))
    value = losses.links(Y, C, R)
    value.backward()
    assert C.grad is None
    Y = Y.detach()
    e = [unit(sum(C.detach()[i, j] * Y[i] for i in range(7))[None])[0] for j in range(7)]
    near = {(i, j): abs(float(e[i] @ e[j])) for i in range(7) for j in range(7)}
    pulled = [1 - s for pair, s in near.items() if R[pair] == 1]
    pushed = [s for pair, s in near.items() if R[pair] == -1]
    few = sum(pulled) / (len(pulled) + 200) + sum(pushed) / (len(pushed) + 2000)  # each pair is there twice
    assert value.item() == pytest.approx(few)
    assert losses.links(Y, C, torch.zeros(7, 7)).item() == 0


def test_negative_information():
    def value(A, B):
        return losses.negative_information(A.softmax(1), B.softmax(1))

    assert gradcheck(value, (rows(7, 3), rows(7, 3, seed=1)))
