# `make install`, `make quickstart` and `make test` make their own virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: install quickstart test check unit slow docs bench clean

install: $(VENV)/.quickstart # what the quickstart and a project of your own need

quickstart: $(VENV)/.quickstart
	$(BIN)/quintain quickstart --out runs/quickstart $(if $(MINUTES),--minutes $(MINUTES))

test: check unit

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow

docs: $(VENV)/.dev # the site, in build/docs: a warning or a broken link is an error
	$(BIN)/python -m sphinx -q -W --keep-going -c docs/_site . build/docs
	$(BIN)/python docs/_site/links.py build/docs

bench: $(VENV)/.dev runs/quickstart/report.json # a script that this machine can't run says so and ends with 2
	for script in benchmarks/*.py; do \
		$(BIN)/python $$script --out runs/bench/$$(basename $$script .py).json || [ $$? -eq 2 ] || exit 1; \
	done

runs/quickstart/report.json: | $(VENV)/.quickstart # the trained model that benchmarks measure
	$(BIN)/quintain quickstart --out runs/quickstart

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "quintain needs Python 3.11 or newer; set PYTHON=python3.11 (found: $$($(PYTHON) --version 2>&1))"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.quickstart: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --constraint constraints.txt --editable '.[quickstart]'
	@touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	$(PIP) --constraint constraints.txt --no-deps bfcl-eval agentdojo
	@touch $@ $(VENV)/.quickstart

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
