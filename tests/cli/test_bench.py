from __future__ import annotations

import importlib.util
import subprocess
import tomllib
from pathlib import Path

import pytest

from vedette.cli import bench

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def asked(monkeypatch):
    """What `python -m benchmarks` is asked for, and where; nothing is run."""
    calls = []

    def run(command, cwd):
        calls.append((command[1:], cwd))
        return subprocess.CompletedProcess(command, 3 if "no-such" in command else 0)

    monkeypatch.setattr(subprocess, "run", run)
    return calls


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["run"],
        ["run", "vcr-fig13"],
        ["run", "vcr-fig13", "churn", "--quick"],
        ["report"],
        ["report", "--quick"],
    ],
)
def test_the_benchmarks_of_the_checkout_are_run(run, asked, words):
    code, _, _ = run("bench", *words)

    assert code == 0
    assert asked == [(["-m", "benchmarks", *words], CHECKOUT)]


def test_an_experiment_that_fails_makes_the_command_fail(run, asked):
    assert run("bench", "run", "no-such")[0] == 3


@pytest.mark.parametrize("words", [["list"], ["run", "vcr-fig13", "--quick"]])
def test_packages_that_are_not_installed_are_named_with_what_to_run(run, asked, monkeypatch, words):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("ncls", "duckdb") else find(name))

    code, out, said = run("bench", *words)

    assert (code, out, asked) == (2, "", [])
    assert said == (
        f"vedette: the benchmarks need packages that are not installed: duckdb, ncls; in {CHECKOUT} run "
        "make setup, or pip install -e '.[bench,dev]'\n"
    )


def test_the_packages_that_are_asked_for_are_those_of_the_extra():
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {extra: {need.partition(">=")[0] for need in extras[extra]} for extra in ("bench", "dev")}

    assert names["bench"] < set(bench._NEEDED) < names["bench"] | names["dev"]


def test_without_a_checkout_it_says_where_the_benchmarks_are(run, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "lib" / "python" / "vedette" / "cli" / "bench.py"))
    monkeypatch.chdir(tmp_path)

    code, _, said = run("bench", "list")

    assert code == 2
    assert said.startswith(f"vedette: the benchmarks are in a checkout of Vedette, and there is none at {tmp_path}; go")
    assert "make setup" in said


def test_the_checkout_that_is_worked_in_serves_an_installed_package(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "__file__", str(tmp_path / "lib" / "python" / "vedette" / "cli" / "bench.py"))
    monkeypatch.chdir(CHECKOUT / "docs")

    assert bench.find_checkout() == CHECKOUT
