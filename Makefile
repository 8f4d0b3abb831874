# `make forgetting` runs the main experiment, `make test` the tests. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
NEWER := sys.exit(sys.version_info < (3, 11) and "nlts needs Python 3.11 or newer: make PYTHON=python3.11")

.PHONY: forgetting test test-slow reading clean

forgetting: .venv/installed
	$(BIN)/python experiments.py forgetting

test: .venv/installed-for-tests
	$(BIN)/ruff check
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist worksteal

# what needs a browser, bubblewrap, a cluster or minutes
test-slow: .venv/installed-for-tests
	$(BIN)/python -m pytest -m slow --numprocesses 2 --dist worksteal

# docs/reading.html, the paper and the code on one page
reading: .venv/installed
	$(BIN)/python -m pip install --quiet latex2mathml
	$(BIN)/python -m docs.reading

.venv/installed: requirements.txt
	$(PYTHON) -c 'import sys; $(NEWER)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	touch $@

# ruff reads the code, xdist tests on two cores, and distributed, optional for users, is a cluster
.venv/installed-for-tests: .venv/installed
	$(BIN)/python -m pip install --quiet 'ruff~=0.17.0' 'pytest-xdist~=3.8' 'distributed~=2026.8'
	touch $@

clean:
	rm -rf .venv .pytest_cache .hypothesis .ruff_cache build *.egg-info
	find . -name __pycache__ -type d -exec rm -rf {} +
