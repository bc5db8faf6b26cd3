# Everything a fresh machine with Python 3.11 and make needs:  make demo   make test
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo screenshots docs paper test test-slow test-rivals test-peers test-lonely-peers test-oldest test-newest fuzz bench faults lint \
	dist sbom lock clean

demo: $(INSTALLED)  ## cluster the digits that ship with scikit-learn: a table and a page with pictures
	OMP_NUM_THREADS=1 $(BIN)/python examples/digits.py  # one thread: the same numbers on every machine of a kind

screenshots: $(INSTALLED)  ## the pictures of the documents, taken of a run of digits in Chromium
	$(BIN)/python docs/make_screenshots.py

export PRODSC_GALLERY ?= True
docs: .venv-docs/.installed  ## the site, examples run, everything checked: docs/_build/html; quicker with PRODSC_GALLERY=False
	OMP_NUM_THREADS=1 PYTHONPATH=src .venv-docs/bin/python -m pytest -m slow tests/test_guide.py
	.venv-docs/bin/python -m sphinx -W --keep-going -b html docs docs/_build/html
	.venv-docs/bin/python docs/check_site.py docs/_build/html --browser

.venv-docs/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

paper: $(INSTALLED)  ## the table of paper/paper.md from docs/choosing.csv
	$(BIN)/python paper/make_table.py

test: $(INSTALLED) lint  ## everything that must hold
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 --dist loadscope  # two workers of one thread each

test-slow: $(INSTALLED)  ## minutes of training on real data
	$(BIN)/python -m pytest -m slow

test-rivals: $(INSTALLED)  ## the methods of the extra `rivals`: EVoC alone compiles for a minute or two
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[rivals]"
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest tests/baselines/test_rivals.py tests/contract \
		-k "rival or umap or evoc or leiden"

test-peers: $(INSTALLED)  ## round trips with the libraries of the extra `peers`, in an environment of their own
	test -x .venv-peers/bin/uv || { $(PYTHON) -m venv .venv-peers && .venv-peers/bin/python -m pip install --quiet uv; }
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	.venv-peers/bin/uv pip install --quiet --system-certs --python .venv-peers/bin/python -c constraints.txt \
		-e ".[dev,peers]"  # pip tries versions of so many libraries for more than half an hour
	OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 .venv-peers/bin/python -m pytest -rs tests/adapters

test-lonely-peers: .venv-release/.installed  ## the same with FiftyOne (and a MongoDB) and latent-scope, apart
	.venv-release/bin/python tools/test_lonely_peers.py

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

dist: .venv-release/.installed  ## wheel and source archive, checked, and tried in a clean environment without extras
	.venv-release/bin/python tools/check_dist.py --python $(PYTHON)

sbom: dist  ## dist/sbom.json: the components of the clean environment (CycloneDX)
	.venv-release/bin/cyclonedx-py environment .venv-clean/bin/python --output-reproducible -o dist/sbom.json

lock: .venv-release/.installed  ## requirements-dev.lock: versions of everything that development uses
	.venv-release/bin/python tools/lock.py

.venv-release/.installed:
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check build twine cyclonedx-bom uv
	touch $@

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
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .venv-oldest .venv-newest .venv-peers .venv-docs .venv-release .venv-clean .venv-fiftyone .venv-latentscope \
		docs/_build docs/_generated docs/api docs/gallery dist fuzz-failures
