# Every command sets up what it needs: a virtual environment in .venv, the packages, and Java 17 or later.

BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -q --dist loadfile --no-loadscope-reorder
COVERAGE := --cov=vedette --cov-report=
COVERAGE_OF_FAST := $(if $(filter test-all,$(MAKECMDGOALS)),$(COVERAGE))
WITHOUT_JIT := tests/data/test_axes.py tests/indexes tests/operators tests/papers tests/queries
export PYTHONHASHSEED := 0

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-matrix lint bench dist docs setup clean

help:  ## Show the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 20

demo: .venv/.ready-run  ## Match 100,000 queries with a Spark stream, check the answers, write a report
	@$(BIN)/vedette demo
	@echo 'Next, a market and a fleet that move, in your browser: $(BIN)/vedette serve --demo'

test: .venv/.ready-dev lint  ## Run the checks and the fast tests
	HYPOTHESIS_PROFILE=fast $(PYTEST) -n 2 -m fast $(COVERAGE_OF_FAST)

test-all: test  ## Run these, the slow tests, all random tests in full, and the tests without JIT; report coverage
	$(PYTEST) -n 3 -m "full or (fast and hypothesis)"
	NUMBA_DISABLE_JIT=1 $(PYTEST) -n 2 -m "fast or full" $(COVERAGE) --cov-append $(WITHOUT_JIT)
	$(BIN)/python -m coverage report --skip-covered --fail-under=90

test-matrix: .venv/.ready-dev  ## Run what takes hours: long random tests, several Spark versions
	$(BIN)/python scripts/test-matrix

lint: .venv/.ready-dev  ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.ready-dev  ## Measure everything at this commit and write the benchmark pages
	$(BIN)/python -m benchmarks

dist: .venv/.ready-dev  ## Build the wheel and the source archive in dist/
	$(BIN)/python -m hatchling build --clean

docs: .venv/.ready-dev  ## Build the documentation site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

setup: .venv/.ready-dev  ## Set up .venv

clean:  ## Remove .venv, caches and generated files
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage demo-report build dist site
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready-%: pyproject.toml constraints.txt scripts/set-up
	@scripts/set-up $*
