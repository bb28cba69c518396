# `make demo` runs the program, `make check` is the gate. Each target makes `.venv` when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet
# Bytecode is kept, whatever the environment says: workers and the programs that tests start would compile every file again.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
# One worker per core; a test file stays on one worker, so its kernels are compiled once. tests/conftest.py orders the files.
WORKERS ?= auto
SPREAD := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
TEST_ARGS ?=
BENCH_ARGS ?=
# What other benchmarks import is no benchmark of its own.
BENCHMARKS = $(filter-out benchmarks/measure.py benchmarks/truth_%.py,$(sort $(wildcard benchmarks/*.py)))

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-kernels test-alone test-laws fuzz mutants check format-check lint types imports house golden bench docs format clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "$(PYTHON) was not found: install Python 3.11 or newer (on Debian: apt-get install python3 python3-venv), or name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "dynid needs Python 3.11 or newer, found $$($(PYTHON) --version 2>&1): name another one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "this Python cannot make virtual environments: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp is newer than pyproject.toml when what it stands for is installed; a second run does nothing.
$(VENV)/.demo-stamp: pyproject.toml | $(BIN)/python
	@echo "installing what running needs into $(VENV) (once, a few minutes)"
	$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.docs-stamp: pyproject.toml | $(BIN)/python
	@echo "installing what the pages need into $(VENV) (once, a few minutes)"
	$(PIP_INSTALL) -e '.[docs]'
	@touch $@ $(VENV)/.demo-stamp

$(VENV)/.dev-stamp: pyproject.toml | $(BIN)/python
	@echo "installing everything into $(VENV) (once, a few minutes)"
	$(PIP_INSTALL) -e '.[dev,docs,ros,dask,http,s3]'
	@touch $@ $(VENV)/.docs-stamp $(VENV)/.demo-stamp

setup: $(VENV)/.dev-stamp ## everything for working on dynid, in .venv

demo: $(VENV)/.demo-stamp ## the whole path on a simulated 7-joint arm; installs only what running needs
	$(BIN)/dynid demo

test: $(VENV)/.dev-stamp ## the tests, without the slow ones
	$(PYTEST) $(SPREAD) $(TEST_ARGS)

test-slow: $(VENV)/.dev-stamp ## the slow tests alone
	$(PYTEST) $(SPREAD) -m slow $(TEST_ARGS) || [ $$? -eq 5 ]  # 5: there are none

# Other kernels of the linear algebra round other last digits; a result that depends on them is no result. SkylakeX needs AVX-512.
KERNELS ?= Haswell Prescott $(shell grep -qsw avx512f /proc/cpuinfo && echo SkylakeX)
test-kernels: $(VENV)/.dev-stamp ## estimation, regression and papers again with other kernels of the linear algebra
	@set -e; for kernel in $(KERNELS); do echo "== OPENBLAS_CORETYPE=$$kernel"; \
	  OPENBLAS_CORETYPE=$$kernel $(PYTEST) $(SPREAD) $(TEST_ARGS) tests/estimation tests/regression tests/dynamics tests/papers; done

test-alone: $(VENV)/.dev-stamp ## the papers' tables without any recording beside the clone
	DYNID_SHARED_DATA=/nonexistent $(PYTEST) $(SPREAD) $(TEST_ARGS) tests/papers

# Tests of laws on examples that hypothesis draws: `make test` looks at 40 of each, this at 200 others.
LAWS = $(shell grep -rl --include='test_*.py' 'import hypothesis\|from hypothesis' tests)
test-laws: $(VENV)/.dev-stamp ## the laws again on 200 drawn examples each
	DYNID_EXAMPLES=200 $(PYTEST) $(SPREAD) $(TEST_ARGS) $(LAWS)

CASES ?= 1000000
fuzz: $(VENV)/.dev-stamp ## mutated files for every reader (CASES=1000000), and processes killed while they write a run
	$(BIN)/python tests/fuzz/campaign.py --cases $(CASES)
	$(BIN)/python tests/fuzz/kills.py

mutants: $(VENV)/.dev-stamp ## one fault at a time put into the core: do the tests notice? (MUTANTS="--module inertia --every 8")
	$(BIN)/python tests/mutation/campaign.py $(MUTANTS)

check: format-check lint types imports house test ## the gate: formatter, linter, types, import contract, size, tests

format-check: $(VENV)/.dev-stamp
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev-stamp
	$(BIN)/ruff check .

types: $(VENV)/.dev-stamp
	$(BIN)/mypy

imports: $(VENV)/.dev-stamp
	$(BIN)/lint-imports

house: $(VENV)/.dev-stamp ## the source has not outgrown the counts recorded in benchmarks/house.json
	$(BIN)/python benchmarks/house.py --check

golden: $(VENV)/.dev-stamp ## keep the results of commands, public names and flags anew, after a change that is meant
	$(BIN)/python tests/golden/make.py

format: $(VENV)/.dev-stamp ## write the code as the formatter likes it
	$(BIN)/ruff check --fix --select I .
	$(BIN)/ruff format .

bench: $(VENV)/.dev-stamp ## every benchmark, us and the reference in one run (BENCH_ARGS=--smoke for a quick look)
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script $(BENCH_ARGS); done

docs: $(VENV)/.docs-stamp ## the site, in site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## what was built, not .venv
	rm -rf site dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +
