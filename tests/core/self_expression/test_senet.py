"""Coefficients as a network of two points, and the graph of their codes."""

import numpy as np
import pytest
import torch

from prodsc.core.self_expression import CodeKernel, ExpressionNet
from prodsc.nn import build_seeded, relu_layers


@pytest.fixture
def network():
    generator = torch.Generator().manual_seed(0)
    query, key = (build_seeded(lambda: relu_layers([5, 12, 8]), generator) for _ in "qk")
    net = ExpressionNet(query, key)
    net.threshold.data.fill_(0.01)
    return net


@pytest.fixture
def X():
    return torch.nn.functional.normalize(torch.from_numpy(np.random.default_rng(0).standard_normal((30, 5))).float())


def test_coefficients_are_soft_thresholded_products(network, X):
    found = network.coefficients(X[:4], X).detach().numpy()
    q = np.tanh(network.query(X).detach().numpy())
    k = np.tanh(network.key(X).detach().numpy())
    for i in range(4):
        for j in range(30):
            t = q[i] @ k[j]
            assert found[i, j] == pytest.approx(np.sign(t) * max(abs(t) - 0.01, 0) / 8, abs=1e-7)
    assert (found == 0).any()  # the threshold makes some of them vanish


def _reference_graph(C, kept, neighbours):
    """Codes without oneself, cut to the largest, unit length; then who is among whose nearest."""
    n = len(C)
    codes = np.abs(C)
    np.fill_diagonal(codes, 0)
    for row in codes:
        row[np.argsort(-np.abs(row))[kept:]] = 0
    codes /= np.linalg.norm(codes, axis=1, keepdims=True)
    cosines = codes @ codes.T
    np.fill_diagonal(cosines, -np.inf)
    graph = np.zeros((n, n))
    for i in range(n):
        graph[i, np.argsort(-cosines[i])[:neighbours]] = 1
    return (graph + graph.T) / 2 + np.eye(n)


@pytest.mark.parametrize("kept", [6, 1000])
def test_the_graph_of_the_nearest_codes(kept, network, X):
    C = network.coefficients(X, X).detach().numpy()
    np.testing.assert_array_equal(CodeKernel(network, X, kept, 3).matrix(), _reference_graph(C, kept, 3))


def test_a_landmark_has_its_own_row_whatever_else_is_asked(network, X):
    kernel = CodeKernel(network, X, 1000, 3)
    for i in (0, 17):
        np.testing.assert_array_equal(kernel.rows(X[[i]])[0], kernel.matrix()[i])
    new = torch.nn.functional.normalize(X[:1] + 0.3)
    own = kernel.rows(new)[0]
    np.testing.assert_array_equal(kernel.rows(torch.cat([X, new]))[-1], own)
    assert (own >= 0.5).sum() >= 3
