"""The page of the test matrix has one line per step and release of Spark: its last result."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "test-matrix"


@pytest.fixture
def matrix(monkeypatch, tmp_path):
    loader = SourceFileLoader("test_matrix_script", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "PAGE", tmp_path / "test-matrix.md")
    return module


def lines(matrix):
    found = matrix.PAGE.read_text().splitlines()[len(matrix.HEAD.splitlines()) :]
    return [[cell.strip() for cell in line.split("|")[3:7]] for line in found]


def test_a_result_replaces_that_of_the_same_step_and_release(matrix, monkeypatch):
    monkeypatch.setattr(matrix, "SEED", "7")
    matrix.record("predicates", "4.3.0", "**failed**", "9")
    matrix.record("predicates", "4.2.0", "passed", "8")
    matrix.record("predicates", "4.3.0", "passed", "10")

    assert lines(matrix) == [["predicates", "7", "4.2.0", "passed"], ["predicates", "7", "4.3.0", "passed"]]


def test_a_failed_step_fails_the_command_and_is_recorded(matrix, monkeypatch):
    monkeypatch.setattr(
        matrix, "STEPS", {"good": lambda: iter([("4.3.0", True)]), "bad": lambda: iter([("4.3.0", False)])}
    )

    assert matrix.main(["good"]) == 0
    assert matrix.main([]) == 1
    assert [line[3] for line in lines(matrix)] == ["passed", "**failed**"]


def test_an_unknown_step_is_refused_with_the_known_ones(matrix):
    with pytest.raises(SystemExit, match="unknown step 'fuzz'; steps are: fuzz-snapshots, predicates, join-predicates"):
        matrix.main(["fuzz"])
