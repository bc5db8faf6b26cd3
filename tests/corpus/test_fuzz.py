"""A small sample of damaged files in every run of the tests; `make fuzz MINUTES=10` tries many more."""

import pytest
from hypothesis import HealthCheck, given, seed, settings

from corpus.fuzzing import GROUPS, Corpus, inputs, outcome
from faults.scenarios import SETTINGS

SLOW = (".mat", ".h5ad")  # read in a process of their own


@pytest.mark.filterwarnings("ignore")  # of tiny fits, whose folders are damaged
@pytest.mark.parametrize("suffix", GROUPS)
def test_a_damaged_file_is_refused_in_one_sentence_or_read(suffix, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for setting in SETTINGS:
        monkeypatch.setattr(*setting)
    corpus = Corpus(suffix, tmp_path)

    @seed(1)
    @settings(
        max_examples=8 if suffix in SLOW else 60,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def check(given_input):
        path = tmp_path / f"damaged{suffix}"
        path.write_bytes(corpus.damaged(*given_input))
        if path.stat().st_size:
            assert outcome(path) in ("accepted", "refused")

    check()
