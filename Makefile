.DEFAULT_GOAL := help
PYTHON ?= $(shell .ci/find-python usual)
VENV := .venv
BIN := $(VENV)/bin
FUZZ_RUNS ?= 5
OLDEST ?= $(shell .ci/find-python oldest)
NEWEST ?= $(shell .ci/find-python newest)
FUZZ_SECONDS ?= 600
FAULTS ?=
DEPLOY_SECONDS ?= 900
# A file of tests runs whole in one process; more processes than this gain little and take memory.
PARALLEL := --numprocesses auto --maxprocesses 8 --dist loadfile
QUICK := tests/unit tests/cli tests/conformance
BOUNDED := tests/unit tests/conformance tests/property

# Targets that install into one environment must not run at the same time.
.NOTPARALLEL:
.PHONY: help demo accessibility deploy-check test test-lowest test-newest fuzz faults services docs docs-check mutants nights study bounds lint audit wheel bench clean

help:  ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make demo PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.tests: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,s3]'
	touch $@

$(VENV)/.bench: $(VENV)/.tests
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	touch $@

$(VENV)/.services: $(VENV)/.tests
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[services,gcs,azure]'
	touch $@

$(VENV)/.docs: $(VENV)/.tests
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

$(VENV)-lowest/.installed: pyproject.toml
	$(OLDEST) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --compile-bytecode \
		--resolution lowest-direct --editable '.[test,s3]'
	touch $@

$(VENV)-newest/.installed: pyproject.toml
	$(NEWEST) -m venv --clear $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-newest/bin/uv pip install --quiet --python $(VENV)-newest/bin/python --compile-bytecode \
		--upgrade --editable '.[test,s3]'
	touch $@

demo: $(VENV)/.installed  ## make a synthetic evaluation, score it, write demo/results/report.html
	$(BIN)/swsdask demo --out demo

test: $(VENV)/.tests  ## compile the kernels, then run the whole test suite
	$(BIN)/swsdask warm-up
	$(BIN)/python -m pytest $(PARALLEL)

test-lowest: $(VENV)-lowest/.installed  ## unit, command line and conformance tests on the lowest versions and the oldest Python; OLDEST=… names another for a new .venv-lowest
	$(VENV)-lowest/bin/swsdask warm-up
	$(VENV)-lowest/bin/python -m pytest $(PARALLEL) $(QUICK)

test-newest: $(VENV)-newest/.installed  ## the same on the newest versions and the newest Python found; NEWEST=… names another for a new .venv-newest
	$(VENV)-newest/bin/swsdask warm-up
	$(VENV)-newest/bin/python -m pytest $(PARALLEL) $(QUICK)

fuzz: $(VENV)/.tests  ## try mutations of every format for FUZZ_SECONDS, then the property tests on twenty times as many examples at random, FUZZ_RUNS times; prints seeds
	$(BIN)/python -m tests.faults.formats --seconds $(FUZZ_SECONDS)
	@for run in $$(seq $(FUZZ_RUNS)); do \
		seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
		echo "make fuzz: run $$run of $(FUZZ_RUNS): pytest -m hypothesis --hypothesis-profile fuzz --hypothesis-seed $$seed"; \
		$(BIN)/python -m pytest -m hypothesis --timeout 3600 --hypothesis-profile fuzz --hypothesis-seed $$seed || exit 1; \
	done

faults: $(VENV)/.tests  ## try damage, hostile archives, interruptions, races and lost processes, and write docs/reliability.md; FAULTS=--short takes minutes
	$(BIN)/python -m tests.faults $(FAULTS)

services: $(VENV)/.services  ## the tests with real servers, which they install and start: object stores and SLURM
	timeout --kill-after=30 900 $(BIN)/python -m pytest -m services --timeout 700 -rs tests/services

docs: $(VENV)/.docs  ## build the documentation: site/index.html, which a browser opens from the disk; `mkdocs serve` shows changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs-check: $(VENV)/.docs  ## build it strictly, follow its links, run every code block of its pages
	$(BIN)/python -m pytest -m docs tests/docs

$(VENV)/axe/package/axe.min.js:
	mkdir -p $(VENV)/axe && cd $(VENV)/axe && rm -f axe-core-*.tgz && npm pack --silent axe-core@4 && tar -xzf axe-core-*.tgz

accessibility: $(VENV)/.tests $(VENV)/axe/package/axe.min.js  ## hold every page against the rules of axe-core, which comes from npm
	AXE=$(VENV)/axe/package/axe.min.js $(BIN)/python -m pytest -m accessibility tests/browser

deploy-check: $(VENV)/.services  ## run the check of every folder of deploy/
	@for check in deploy/*/check; do \
		echo "== $$check"; timeout --kill-after=30 $(DEPLOY_SECONDS) $$check < /dev/null || exit 1; \
	done

mutants: $(VENV)/.tests  ## change the meaning of one line after another, and see that a named test fails each time
	$(BIN)/python -m tests.mutants

nights: $(VENV)/.tests  ## kill KILLS=200 nights at their steps, race RACES=50, and compare with undisturbed ones; print SEED
	$(BIN)/python -m tests.faults.nights $(or $(KILLS),200) $(or $(RACES),50) $(addprefix --seed ,$(SEED)) $(NIGHTS_URL)

study: $(VENV)/.tests  ## 4000 simulated evaluations: intervals cover 92-98 %, tests reject 3-7 %; SEED=1993
	$(BIN)/python -m tests.study $(SEED)

bounds: $(VENV)/.tests  ## the tests of kernels with every index of theirs checked; compiles them anew
	kept=$$(mktemp -d) && trap 'rm -rf "$$kept"' EXIT && export NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="$$kept" && \
	$(BIN)/swsdask warm-up && $(BIN)/python -m pytest $(PARALLEL) $(BOUNDED)

lint: $(VENV)/.tests  ## ruff, mypy --strict, the layers and bandit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive swsdask

$(VENV)/.audit: $(VENV)/.installed
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
	touch $@

audit: $(VENV)/.audit  ## pip-audit: known weaknesses of what is installed; needs the database of PyPI
	$(VENV)/audit/bin/pip-audit --progress-spinner off --timeout 10 --skip-editable \
		--path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

wheel: $(VENV)/.tests  ## build sdist and wheel into dist, and try the wheel in a fresh environment
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
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest demo dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .fuzz
