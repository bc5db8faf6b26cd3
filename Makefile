# Everything a fresh machine with Python 3.11 and make needs:  make demo   make test
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo screenshots test test-slow test-rivals test-peers test-oldest test-newest fuzz bench faults lint clean

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

test-peers: $(INSTALLED)  ## round trips with the libraries of the extra `peers`, in an environment of their own
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,peers]"
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 .venv-peers/bin/python -m pytest -rs tests/adapters

OLDEST ?= .venv-oldest
test-oldest:  ## a quick part of the tests with the oldest versions that pyproject.toml allows; several GB the first time
	test -x $(OLDEST)/bin/uv || { $(PYTHON) -m venv $(OLDEST) && $(OLDEST)/bin/python -m pip install --quiet uv; }
	$(OLDEST)/bin/uv pip install --quiet --system-certs --python $(OLDEST)/bin/python --resolution lowest-direct ".[dev]"
	PYTHONPATH=src OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest -m "not slow" -W default \
		tests/core tests/nn tests/sources tests/corpus tests/estimators tests/golden

NEWEST ?= .venv-newest
test-newest:  ## the same with the newest versions that PyPI has; torch stays that of constraints.txt, newer ones are GB
	test -x $(NEWEST)/bin/python || $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(NEWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		--upgrade --upgrade-strategy eager ".[dev]"
	$(NEWEST)/bin/python -m pip list --disable-pip-version-check
	PYTHONPATH=src OMP_NUM_THREADS=1 $(NEWEST)/bin/python -m pytest -m "not slow" \
		tests/core tests/nn tests/sources tests/corpus tests/estimators tests/golden

MINUTES ?= 10
fuzz: $(INSTALLED)  ## damaged files of every format for some minutes: make fuzz MINUTES=60
	PYTHONPATH=src OMP_NUM_THREADS=1 nice -n 10 $(BIN)/python tests/corpus/fuzz.py --minutes $(MINUTES)

bench: $(INSTALLED)  ## every promised ratio of speed, measured here; some of them: make bench ONLY="step-1 predict"
	PRODSC_DATA="$${PRODSC_DATA:-../shared/data}" $(BIN)/python benchmarks/bench.py $(ONLY)

faults: $(INSTALLED)  ## every read and write of every command made to fail, damaged models, kills: half an hour
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python tests/faults/campaign.py
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python tests/faults/tamper.py 1000
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python tests/faults/kills.py 200

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
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .venv-oldest .venv-newest .venv-peers fuzz-failures
