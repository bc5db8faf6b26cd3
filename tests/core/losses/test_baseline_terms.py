"""The terms of the deep baselines against naive re-derivations, and their gradients, in float64."""

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from prodsc.core import losses


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


def test_disagreement_and_entropy():
    P, P_other = probabilities(2, 6, 3, 0), probabilities(2, 6, 3, 1)
    apart = [-np.mean([np.log(float(P[h, i] @ P_other[h, i])) for i in range(6)]) for h in range(2)]
    np.testing.assert_allclose(losses.disagreement(P, P_other), apart)
    even = [sum(m * np.log(m) for m in P[h].numpy().mean(0)) for h in range(2)]
    np.testing.assert_allclose(losses.negative_entropy(P), even)
    assert float(losses.negative_entropy(torch.eye(4))) == pytest.approx(-np.log(4))
    assert gradcheck(losses.disagreement, (P.requires_grad_(), P_other.requires_grad_()))
    assert gradcheck(losses.negative_entropy, P)


def test_disagreement_of_two_sure_opposites_is_finite():
    P = torch.eye(2)
    assert torch.isfinite(losses.disagreement(P, P.flip(0)))


def test_soft_cross_entropy():
    logits, T = unit_rows(5, 3) * 4, probabilities(1, 5, 3)[0]
    p = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum(1, keepdims=True)
    reference = -np.mean([sum(T[i, c] * np.log(p[i, c]) for c in range(3)) for i in range(5)])
    assert float(losses.soft_cross_entropy(logits, T)) == pytest.approx(reference)
    assert gradcheck(losses.soft_cross_entropy, (logits.requires_grad_(), T.requires_grad_()))


def test_self_label_weighs_clusters_alike_and_leaves_out_unsure_rows():
    logits = torch.tensor([[9.0, 0, 0], [8.0, 0, 0], [7.0, 0, 0], [0, 6.0, 0], [0.1, 0, 0]], dtype=torch.float64)
    lost = -torch.log_softmax(logits, dim=1).max(1).values.numpy()
    reference = (lost[:3].mean() + lost[3]) / 2
    assert float(losses.self_label(logits, 0.99)) == pytest.approx(reference)
    assert float(losses.self_label(logits[4:], 0.99)) == 0
    assert gradcheck(lambda x: losses.self_label(x, 0.99), logits.requires_grad_())


def test_fitted_classifier_is_adam_on_cross_entropy():
    """The same steps by autograd and torch's own optimiser."""
    X, T = unit_rows(8, 4), probabilities(1, 8, 3)[0]
    start = torch.from_numpy(np.random.default_rng(5).standard_normal((3, 5)))
    weight, bias = start[:, :-1].clone().requires_grad_(), start[:, -1].clone().requires_grad_()
    optimizer = torch.optim.Adam([weight, bias], lr=0.1)
    for _ in range(7):
        optimizer.zero_grad()
        losses.soft_cross_entropy(X @ weight.T + bias, T).backward()
        optimizer.step()
    before = start.clone()
    found = losses.fitted_classifier(X, T, start[:, :-1], start[:, -1], 7, 0.1)
    torch.testing.assert_close(found, (X @ weight.T + bias).detach())
    assert torch.equal(start, before)
    assert not found.requires_grad


def test_terms_of_a_dictionary():
    X, D = unit_rows(4, 3), unit_rows(6, 3, 1)
    C = torch.from_numpy(np.random.default_rng(2).standard_normal((4, 6)))
    residual = [X[i] - sum(C[i, j] * D[j] for j in range(6)) for i in range(4)]
    assert float(losses.dictionary_expression(X, C, D)) == pytest.approx(sum(float(r @ r) for r in residual) / 8)
    net = sum(0.9 * abs(c) + 0.05 * c**2 for c in C.flatten().tolist()) / 4
    assert float(losses.elastic_net(C, 0.9)) == pytest.approx(net)
    assert gradcheck(lambda C: losses.dictionary_expression(X, C, D) + losses.elastic_net(C, 0.9), C.requires_grad_())


def test_basis_affinity_and_its_target():
    Z, D = unit_rows(6, 4), torch.from_numpy(np.random.default_rng(3).standard_normal((4, 6)))  # k = 3 blocks of r = 2
    s = np.zeros((6, 3))
    for i in range(6):
        for j in range(3):
            inside = np.linalg.norm(Z[i].numpy() @ D[:, 2 * j : 2 * j + 2].numpy()) ** 2
            s[i, j] = (inside + 5 * 2) / ((5 + 1) * 2)
    s /= s.sum(1, keepdims=True)
    S = losses.basis_affinity(Z, D, 3, 5.0)
    np.testing.assert_allclose(S, s)
    target = s**2 / s.sum(0)
    target /= target.sum(1, keepdims=True)
    np.testing.assert_allclose(losses.sharpened_target(S), target)
    reference = sum(target[i, j] * np.log(target[i, j] / s[i, j]) for i in range(6) for j in range(3)) / 18
    T = losses.sharpened_target(S)
    assert float(losses.divergence(T, S)) == pytest.approx(reference)
    assert float(losses.divergence(S, S)) == pytest.approx(0, abs=1e-12)
    assert gradcheck(
        lambda Z, D: losses.divergence(T, losses.basis_affinity(Z, D, 3, 5.0)), (Z.requires_grad_(), D.requires_grad_())
    )


def test_bases_are_asked_to_be_orthonormal_and_apart():
    D = torch.from_numpy(np.random.default_rng(3).standard_normal((4, 6)))
    products = (D.T @ D).numpy()
    assert float(losses.unit_columns(D)) == pytest.approx(np.linalg.norm(products * np.eye(6) - np.eye(6)))
    outside = products * (1 - np.kron(np.eye(3), np.ones((2, 2))))
    assert float(losses.overlap(D, 3)) == pytest.approx(np.linalg.norm(outside))
    assert float(losses.overlap(torch.eye(6), 3)) == 0
    assert gradcheck(lambda D: losses.unit_columns(D) + losses.overlap(D, 3), D.requires_grad_())


def test_mean_square():
    X, X_hat = unit_rows(4, 3), unit_rows(4, 3, 1)
    assert float(losses.mean_square(X, X_hat)) == pytest.approx(np.mean((X.numpy() - X_hat.numpy()) ** 2))
