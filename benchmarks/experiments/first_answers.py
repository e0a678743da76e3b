"""The first answer of each operator on a host that has never run it: cold, warmed, and on a Spark executor."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import vedette
from benchmarks.first_answers import OPERATORS
from benchmarks.harness import AnswersDifferError, Bench, experiment

ROOT, PACKAGE = Path(__file__).parents[2], Path(vedette.__file__).parent
TARGET = "first-answers"


@experiment(TARGET)
def first_answers(bench: Bench) -> None:
    """Each operator in a new process with a fresh folder of kernels, then with one that `vedette warm` has filled."""
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = _copy_package(Path(folder, "cold")), _copy_package(Path(folder, "warm"))
        command = [sys.executable, "-c", "from vedette.cli.app import app; app()", "warm"]
        subprocess.run(command, env=_environment(warm), check=True, stdout=subprocess.DEVNULL)
        executor = _executor_settings(_copy_package(Path(folder, "executor")))
        for name in OPERATORS:
            runs = [_run(warm, name) for _ in range(bench.repeats)]
            first = _run(cold, name)
            on_spark, spark_alone = (_run(warm, name, json.dumps(executor), *each) for each in ((), ("nothing",)))
            if {first["answers"]} != {each["answers"] for each in runs}:
                raise AnswersDifferError(f"{name}: kernels from files have other answers than compiled ones")
            bench.record(TARGET, name, "without kernels", first["seconds"], compiled=first["compiled"])
            _judge(bench, name, "after `vedette warm`", runs)
            _judge(bench, name, "a Spark executor, kernels from the driver", [on_spark])
            bench.record(TARGET, name, "a Spark executor, functions that do nothing", spark_alone["seconds"])
            shutil.rmtree(cold.parent)
            _copy_package(cold.parent)


def _judge(bench: Bench, name: str, state: str, runs: list[dict[str, Any]]) -> None:
    seconds = statistics.median(each["seconds"] for each in runs)
    bench.record(TARGET, name, state, seconds)
    bench.verdict(TARGET, f"{name}; {state}", "seconds to the first answer", seconds, 3)
    bench.verdict(TARGET, f"{name}; {state}", "kernels compiled", max(each["compiled"] for each in runs), 0)


def _copy_package(folder: Path) -> Path:
    """A copy of the package without kernels, as pip installs it; returns the folder to import it from."""
    shutil.copytree(PACKAGE, folder / "source" / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(folder / "source", quiet=2)
    for each in ("home", "temporary"):
        (folder / each).mkdir()
    return folder / "source"


def _environment(source: Path) -> dict[str, str]:
    """The environment of a process that uses this copy, and folders of its own for everything else."""
    own = {"PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "HOME": str(source.parent / "home")}
    own |= {"TMPDIR": str(source.parent / "temporary"), "PYSPARK_PYTHON": sys.executable}
    return {
        name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")
    } | own


def _executor_settings(source: Path) -> dict[str, str]:
    """Settings of a session with one executor, whose workers use this copy."""
    environment = {name: _environment(source)[name] for name in ("PYTHONPATH", "HOME", "TMPDIR")}
    settings = {f"spark.executorEnv.{name}": value for name, value in environment.items()}
    settings |= {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "1"}
    return settings | {"master": "local-cluster[1,1,1024]"}


def _run(source: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.first_answers", *arguments]
    done = subprocess.run(command, env=_environment(source), check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]
