# Everything a fresh machine with Python 3.11 and make needs:  make demo   make test
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo screenshots test test-slow test-rivals bench lint clean

demo: $(INSTALLED)  ## cluster the digits that ship with scikit-learn: a table and a page with pictures
	OMP_NUM_THREADS=1 $(BIN)/python examples/digits.py  # one thread: the same numbers on every machine of a kind

screenshots: $(INSTALLED)  ## the pictures of the documents, taken of a run of digits in Chromium
	$(BIN)/python docs/make_screenshots.py

test: $(INSTALLED) lint  ## everything that must hold
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 --dist loadscope  # two workers of one thread each

test-slow: $(INSTALLED)  ## minutes of training on real data
	$(BIN)/python -m pytest -m slow

test-rivals: $(INSTALLED)  ## the methods of the extra `rivals`: EVoC alone compiles for a minute or two
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[rivals]"
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest tests/baselines/test_rivals.py tests/contract \
		-k "rival or umap or evoc or leiden"

bench: $(INSTALLED)  ## every promised ratio of speed, measured here; some of them: make bench ONLY="step-1 predict"
	PRODSC_DATA="$${PRODSC_DATA:-../shared/data}" $(BIN)/python benchmarks/bench.py $(ONLY)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The stamp is made last, so an interrupted installation is done again.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
