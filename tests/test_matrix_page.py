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


def test_a_missing_python_is_recorded_and_is_no_failure(matrix, monkeypatch):
    monkeypatch.setattr(matrix, "STEPS", {"spark-versions": lambda: iter([("4.3.0, Python 3.12", "not available")])})

    assert matrix.main([]) == 0
    assert [line[2:] for line in lines(matrix)] == [["4.3.0, Python 3.12", "not available"]]
    assert matrix._find_python("2.99") is None
    assert matrix._find_python(matrix._python()) is not None


def test_every_spark_is_tested_with_this_python_and_the_ends_with_others(matrix, monkeypatch):
    monkeypatch.setattr(matrix, "_python", lambda: "3.11")
    monkeypatch.setenv("SPARK_VERSIONS", "4.0 4.1 4.2")
    monkeypatch.setenv("PYTHON_VERSIONS", "3.11 3.12")

    assert [" ".join(each) for each in matrix._combinations()] == [
        "4.0 3.11", "4.1 3.11", "4.2 3.11", "4.0 3.12", "4.2 3.12",
    ]  # fmt: skip


def test_an_unknown_step_is_refused_with_the_known_ones(matrix):
    with pytest.raises(SystemExit, match="unknown step 'fuzz'; steps are: fuzz-snapshots, predicates, join-predicates"):
        matrix.main(["fuzz"])
