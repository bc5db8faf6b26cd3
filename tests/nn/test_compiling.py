"""torch.compile during training: the same labels, and nothing of it is left afterwards."""

import os
import subprocess
import sys

import numpy as np
import pytest

from conftest import union_of_subspaces
from prodsc import PRODSC
from prodsc.nn import compiled

HOW = {"epochs": 2, "hidden_size": 16, "n_components": 8, "random_state": 0}

# A process of its own: the checks of shapes that tests switch on cannot be compiled. The backend "eager" is the
# translation by torch without a compiler, which not every machine has.
COMPARE = """
import sys
import numpy as np
from prodsc import PRODSC
from prodsc.nn import compiling
from prodsc.pro_dsc import trainer
rows, backend, out = sys.argv[1:]
calls = []
def with_backend(network, enabled):
    calls.append(enabled)
    return compiling.compiled(network, enabled, backend)
trainer.compiled = with_backend
X = np.load(rows)
how = dict({how})
plain, fast = PRODSC.from_flat(3, **how).fit(X), PRODSC.from_flat(3, **how, compile="on").fit(X)
assert calls == [False, True], calls
assert (plain.labels_ == fast.labels_).all()
for name, weight in plain.network_.state_dict().items() if backend == "eager" else ():  # others round differently
    np.testing.assert_allclose(fast.network_.state_dict()[name], weight, rtol=1e-3, atol=1e-4)
fast.save(out)
assert (PRODSC.load(out).predict(X) == plain.predict(X)).all()
""".replace("{how}", str(HOW))


@pytest.fixture(scope="module")
def X():
    return union_of_subspaces(n_per_class=60, n_classes=3)[0].astype(np.float32)


@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_compiled_fit_gives_the_same_labels(backend, X, tmp_path):
    np.save(tmp_path / "rows.npy", X)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", COMPARE, str(tmp_path / "rows.npy"), backend, str(tmp_path / "model")]
    done = subprocess.run(words, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch, in the import of its compiler
def test_nothing_is_left_after_the_context(X):
    network = PRODSC.from_flat(3, **HOW).fit(X).network_
    with compiled(network, True):
        assert network.encoder._compiled_call_impl is not None
    assert network.encoder._compiled_call_impl is None
    with compiled(network, False):
        assert network.encoder._compiled_call_impl is None
