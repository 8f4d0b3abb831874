# `make forgetting` runs the main experiment, `make test` the tests. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: forgetting test clean

forgetting: $(INSTALLED)
	$(BIN)/python experiments.py forgetting

test: $(INSTALLED)
	$(BIN)/python -m pytest

$(INSTALLED): requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nlts needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt
	touch $@

clean:
	rm -rf .venv .pytest_cache .hypothesis __pycache__
