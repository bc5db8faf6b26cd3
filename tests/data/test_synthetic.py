import numpy as np
import pytest

from prodsc.data.synthetic import curve_and_blobs


@pytest.mark.parametrize("blobs", [1, 2])
def test_curve_and_blobs(blobs):
    X, y = curve_and_blobs(blobs)
    assert X.shape == (200, 3)
    np.testing.assert_array_equal(np.bincount(y), [100, 100])
    assert abs(np.linalg.norm(X, axis=1).mean() - 1) < 0.05
    assert np.abs(X[y == 0, 2]).max() < 0.45  # the wave is at most sin(1/5) high
    poles = X[y == 1, 2]
    assert (poles > 0).sum() == 100 // blobs
    assert not np.array_equal(X, curve_and_blobs(blobs, seed=1)[0])
