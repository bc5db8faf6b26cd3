import numpy as np
import pytest
import torch

from prodsc.core import linalg


def symmetric(n, seed=0, dtype=torch.float64):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return torch.from_numpy(M + M.T).to(dtype)


@pytest.mark.parametrize(("n", "k"), [(20, 3), (20, 50), (300, 4), (300, 60), (300, 200)])
def test_smallest(n, k):
    """Small and full, Lanczos, LAPACK's subset, and nearly all."""
    M = symmetric(n)
    values, vectors = linalg.smallest_eigenvectors(M, k)
    k = min(n, k)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.numpy())[:k], atol=1e-8)
    torch.testing.assert_close(M @ vectors, vectors * values, atol=1e-6, rtol=0)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(k, dtype=M.dtype), atol=1e-8, rtol=0)


def test_largest_is_descending():
    M = symmetric(50)
    values, _ = linalg.largest_eigenvectors(M, 4)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.numpy())[::-1][:4], atol=1e-9)


def test_falls_back_when_lanczos_stalls():
    M = symmetric(400, dtype=torch.float32)
    assert linalg._lanczos(M, 10, restarts=1) is None  # it does stall, so what follows is LAPACK's answer
    values, _ = linalg.smallest_eigenvectors(M, 10, limits=linalg.EigenLimits(lanczos_restarts=1))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.double().numpy())[:10], atol=1e-3)


@pytest.mark.parametrize("k", [60, 200])
def test_falls_back_when_lapack_fails(monkeypatch, k):
    failed = []

    def fails(*_, **__):
        failed.append(1)
        raise np.linalg.LinAlgError("did not converge")

    monkeypatch.setattr(linalg.scipy.linalg, "eigh", fails)
    M = symmetric(300)
    values, vectors = linalg.smallest_eigenvectors(M, k)
    assert failed
    torch.testing.assert_close(M @ vectors, vectors * values, atol=1e-6, rtol=0)


def test_falls_back_to_float64(monkeypatch):
    whole = torch.linalg.eigh

    def only_double(M):
        if M.dtype == torch.float32:
            raise torch.linalg.LinAlgError("did not converge")
        return whole(M)

    monkeypatch.setattr(torch.linalg, "eigh", only_double)
    M = symmetric(20, dtype=torch.float32)
    values, vectors = linalg.smallest_eigenvectors(M, 5)
    assert values.dtype == vectors.dtype == torch.float32
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.numpy())[:5], atol=1e-4)


@pytest.mark.parametrize("n", [12, 40])
def test_half_logdet_and_its_gradient(n):
    M = symmetric(n)
    M = (M @ M.T + torch.eye(n)).requires_grad_()
    value = linalg.half_logdet(M)
    assert value.item() == pytest.approx(torch.logdet(M).item() / 2)
    (found,) = torch.autograd.grad(value, M)
    torch.testing.assert_close(found, torch.linalg.inv(M).detach() / 2)


def test_gram_gradient():
    Y = symmetric(6)[:, :3].clone().requires_grad_()
    weight = symmetric(6, seed=1).triu()
    (found,) = torch.autograd.grad((weight * linalg.gram(Y)).sum(), Y)
    (reference,) = torch.autograd.grad((weight * (Y @ Y.T)).sum(), Y)
    torch.testing.assert_close(found, reference)
    assert torch.autograd.gradcheck(linalg.gram, Y)


def test_multiplicity_is_found():
    """A graph of 5 components has five zero eigenvalues; Lanczos must not miss one."""
    A = torch.block_diag(*[torch.ones(60, 60) - torch.eye(60)] * 5)
    values, _ = linalg.smallest_eigenvectors(A.sum(1).diag() - A, 6)
    assert (values[:5].abs() < 1e-3).all()
    assert values[5] > 1


def blocks(n_blocks=8, size=60, seed=0):
    """The Laplacian of nearly separate groups: the first eigenvalues are small, with a gap after them."""
    rng = np.random.default_rng(seed)
    A = rng.random((n_blocks * size,) * 2) * 0.02
    for i in range(n_blocks):
        A[i * size : (i + 1) * size, i * size : (i + 1) * size] = rng.random((size, size))
    A = torch.from_numpy(A + A.T)
    return A.sum(1).diag() - A


def near(U, by=0.02, seed=1):
    return U + by * torch.from_numpy(np.random.default_rng(seed).standard_normal(U.shape)).to(U)


def exact_is_off(*_):
    raise AssertionError("solved anew")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_start_is_refined(monkeypatch, dtype):
    L = blocks().to(dtype)
    values, U = linalg.smallest_eigenvectors(L, 8)
    monkeypatch.setattr(linalg, "_lanczos", exact_is_off)
    monkeypatch.setattr(linalg, "_lapack", exact_is_off)
    begun = near(U)
    refined, V = linalg.smallest_eigenvectors(L, 8, start=begun)
    torch.testing.assert_close(V.T @ V, torch.eye(8, dtype=dtype), atol=1e-5, rtol=0)
    assert -1e-4 <= refined.sum() - values.sum() <= 1e-3 * values.sum()  # Ky Fan: from above
    Q = torch.linalg.qr(begun).Q
    assert torch.trace(Q.T @ L @ Q) > 1.05 * values.sum()  # the start itself was not good enough


def test_a_tight_refinement_finds_the_eigenvectors():
    L = blocks()
    values, U = linalg.smallest_eigenvectors(L, 8)
    refined, V = linalg._lobpcg(L, near(U, by=1.0), linalg.EigenLimits(refined=1e-7, refinements=100))
    np.testing.assert_allclose(refined, values, atol=1e-8)
    np.testing.assert_allclose(np.linalg.svd((U.T @ V).numpy())[1], 1, atol=1e-8)


def test_a_poor_start_is_not_used():
    M = symmetric(400)  # no gap to speak of
    start = torch.from_numpy(np.random.default_rng(1).standard_normal((400, 10)))
    assert linalg._lobpcg(M, start, linalg.EIGEN_LIMITS) is None
    values, _ = linalg.smallest_eigenvectors(M, 10, start=start)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.numpy())[:10], atol=1e-8)


@pytest.mark.parametrize("n", [20, 400])
def test_singular_vectors(n):
    """Of a matrix with large negative eigenvalues."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((n, n)))[0]
    values = np.r_[-9.0, 8.0, -7.0, 6.0, np.linspace(-1, 1, n - 4)]
    found, vectors = linalg.singular_vectors(torch.from_numpy(Q * values @ Q.T), 3)
    np.testing.assert_allclose(found, [9, 8, 7], atol=1e-8)
    np.testing.assert_allclose(np.abs(vectors.numpy().T @ Q[:, :3]), np.eye(3), atol=1e-6)
