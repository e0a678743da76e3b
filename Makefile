# Everything here does its own set-up: a virtual environment in .venv, the packages, and Java 17 or later.

BIN := .venv/bin
export PYTHONHASHSEED := 0

.DEFAULT_GOAL := help
.PHONY: help demo test lint bench setup clean

help:  ## Show what there is to run
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 14

demo: .venv/.ready-run  ## Watch 100,000 standing queries being matched in a Spark stream
	@$(BIN)/vedette demo

test: .venv/.ready-dev lint  ## Run the checks and the tests
	$(BIN)/python -m pytest -q -n 2 --dist loadfile
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile tests/indexes tests/papers tests/operators tests/queries tests/data/test_axes.py

lint: .venv/.ready-dev  ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.ready-dev  ## Measure against other tools and write docs/benchmarks.md
	$(BIN)/python -m benchmarks

setup: .venv/.ready-dev  ## Only set up

clean:  ## Remove what was set up and made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis demo-report build dist
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready-%: pyproject.toml constraints.txt scripts/set-up
	@scripts/set-up $*
