# `make forgetting` runs the main experiment, `make test` the tests. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: forgetting test clean

forgetting: .venv/installed
	$(BIN)/python experiments.py forgetting

test: .venv/installed-for-tests
	$(BIN)/python -m pytest

.venv/installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nlts needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	touch $@

# distributed is optional for users: it runs experiments on a Dask cluster
.venv/installed-for-tests: .venv/installed
	$(BIN)/python -m pip install --quiet 'distributed~=2026.8'
	touch $@

clean:
	rm -rf .venv .pytest_cache .hypothesis __pycache__
