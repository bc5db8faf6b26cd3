"""What must hold for any input."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prodsc.core import losses, metrics
from prodsc.core.self_expression import self_expression

seeds = st.integers(0, 2**16)


def unit_rows(n, d, seed):
    Y = np.random.default_rng(seed).standard_normal((n, d))
    return torch.from_numpy(Y / np.linalg.norm(Y, axis=1, keepdims=True))


@given(
    seeds,
    st.integers(2, 12),
    st.integers(1, 6),
    st.sampled_from(["softmax", "sinkhorn"]),
    st.sampled_from(["symmetric", "directed"]),
)
def test_coefficients_are_permutation_equivariant(seed, n, d, normaliser, form):
    Y = unit_rows(n, d, seed)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(n))
    before = self_expression(Y, 0.2, normaliser, 3, form)
    after = self_expression(Y[order], 0.2, normaliser, 3, form)
    torch.testing.assert_close(after.C, before.C[order][:, order])
    torch.testing.assert_close(after.A, before.A[order][:, order])


@given(seeds, st.integers(2, 12), st.integers(1, 6), st.floats(0.02, 2.0))
def test_no_point_expresses_itself_and_A_is_an_affinity(seed, n, d, eta):
    found = self_expression(unit_rows(n, d, seed), eta)
    assert (found.C.diagonal() == 0).all()
    assert (found.A >= 0).all()
    torch.testing.assert_close(found.A, found.A.T)


@given(seeds, st.integers(2, 12), st.integers(2, 6))
def test_coding_rate_does_not_see_rotations_or_order(seed, n, d):
    Z = unit_rows(n, d, seed)
    Q = torch.from_numpy(np.linalg.qr(np.random.default_rng(seed + 1).standard_normal((d, d)))[0])
    order = torch.from_numpy(np.random.default_rng(seed).permutation(n))
    torch.testing.assert_close(losses.coding_rate(Z @ Q, 2.0), losses.coding_rate(Z, 2.0))
    torch.testing.assert_close(losses.coding_rate(Z[order], 2.0), losses.coding_rate(Z, 2.0))


@given(seeds, st.lists(st.integers(2, 6), min_size=1, max_size=4))
def test_block_diagonal_is_zero_exactly_for_enough_components(seed, sizes):
    rng = np.random.default_rng(seed)
    blocks = [torch.from_numpy(b + b.T) for b in (rng.uniform(0.5, 1.0, (s, s)) for s in sizes)]
    A = torch.block_diag(*blocks)
    assert abs(float(losses.block_diagonal(A, len(sizes)))) < 1e-9
    if len(sizes) < len(A):
        assert float(losses.block_diagonal(A, len(sizes) + 1)) > 1e-3


@settings(max_examples=50)
@given(seeds, st.integers(3, 40), st.integers(1, 5))
def test_scores_do_not_see_names_of_clusters(seed, n, k):
    rng = np.random.default_rng(seed)
    true, predicted = rng.integers(k, size=n), rng.integers(k + 1, size=n)
    renamed = rng.permutation(k + 1)[predicted] * 7 - 3
    for score in (metrics.accuracy, metrics.nmi, metrics.ari):
        assert abs(score(true, predicted) - score(true, renamed)) < 1e-9
    assert metrics.accuracy(true, true) == 1.0
