.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint bench clean

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,s3]'
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

demo: $(VENV)/.installed  ## make a synthetic evaluation, score it, write demo/results/report.html
	$(BIN)/swsdask demo --out demo

test: $(VENV)/.installed  ## run the whole test suite
	$(BIN)/python -m pytest

lint: $(VENV)/.installed  ## ruff, mypy --strict and the layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.bench  ## measure, and write tests/bench/RESULTS.md
	$(BIN)/python -m tests.bench

clean:  ## remove what was made
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
