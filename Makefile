.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FUZZ_RUNS ?= 20

.PHONY: help demo test fuzz lint wheel bench clean

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

test: $(VENV)/.installed  ## run the whole test suite, its kernels compiled beforehand: no test waits for that
	$(BIN)/python -c 'from swsdask.execution.clusters import load_kernels; load_kernels()'
	$(BIN)/python -m pytest

fuzz: $(VENV)/.installed  ## try the property tests at random, FUZZ_RUNS times, each with a seed that it prints
	@for run in $$(seq $(FUZZ_RUNS)); do \
		seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
		echo "make fuzz: run $$run of $(FUZZ_RUNS): pytest -m hypothesis --hypothesis-profile fuzz --hypothesis-seed $$seed"; \
		$(BIN)/python -m pytest -m hypothesis --timeout 3600 --hypothesis-profile fuzz --hypothesis-seed $$seed || exit 1; \
	done

lint: $(VENV)/.installed  ## ruff, mypy --strict and the layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

wheel: $(VENV)/.installed  ## build sdist and wheel into dist, and try the wheel in a fresh environment
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	tar -tzf dist/swsdask-*.tar.gz | grep -q '/tests/cases/README.md$$'
	fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(BIN)/python -m venv "$$fresh/venv" && \
	"$$fresh/venv/bin/python" -m pip install --quiet --disable-pip-version-check dist/swsdask-*.whl && \
	cp tests/installed.py "$$fresh" && cd "$$fresh" && \
	venv/bin/swsdask demo --out demo && venv/bin/python installed.py demo

bench: $(VENV)/.bench  ## measure, and write tests/bench/RESULTS.md
	$(BIN)/python -m tests.bench

clean:  ## remove what was made
	rm -rf $(VENV) demo dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
