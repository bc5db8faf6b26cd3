"""prodsc diagnose: verdict, numbers, advice."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from conftest import SMALL
from prodsc import PRODSC
from prodsc.cli import main

BOUND = 16 / (0.1 * 1.1)


@pytest.mark.parametrize(("gamma", "word"), [("auto", "healthy"), (50 * BOUND, "collapsed")])
def test_diagnose(gamma, word, tmp_path, capsys):
    X = load_digits(n_class=4).data[:300]
    np.save(tmp_path / "X.npy", X)
    PRODSC.from_flat(4, gamma=gamma, on_collapse="ignore", **SMALL | {"epochs": 60}).fit(X).save(tmp_path / "run")
    with pytest.raises(SystemExit) as end:
        main(["diagnose", str(tmp_path / "run"), str(tmp_path / "X.npy")])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].startswith(f"Representation: {word}.")
    assert "Labels: " in said
    assert "Simpler methods: " in said
    assert "no-collapse margin" in said
    assert "effective rank of Z" in said
