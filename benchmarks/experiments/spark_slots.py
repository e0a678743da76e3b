"""Stateful streams on executors with several slots, where a shard meets another Python worker in most micro-batches.

Compared with the same slots as executors of one slot each, in which a shard meets the worker that has its state.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.slot_streams import OPERATORS, Reports, Size, write_streams

ROOT = Path(__file__).parents[2]
N_FIRST = 12  # micro-batches in which workers meet shards for the first time
MOST_FULL, MOST_TIMES = 0.05, 1.3
SEVERAL, ONE = "several slots per executor", "one slot per executor"


@experiment("spark-slots")
def spark_slots(bench: Bench) -> None:
    """One executor with four slots, against four executors with one slot, as `local-cluster`."""
    settings = {"spark.executor.memory": "512m"}
    _compare(bench, "spark-slots", {
        SEVERAL: ("local-cluster[1,4,2048]", settings | {"spark.executor.memory": "2g"}),
        ONE: ("local-cluster[4,1,512]", settings),
    })  # fmt: skip


@experiment("spark-slots-standalone")
def spark_slots_standalone(bench: Bench) -> None:
    """A standalone cluster of two workers with two slots: executors with two slots, against executors with one."""
    from tests.deploy.cluster import SETTINGS, Cluster

    with tempfile.TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster:
        settings = SETTINGS | {"spark.executorEnv.PYTHONPATH": str(ROOT / "src")}
        _compare(bench, "spark-slots-standalone", {
            SEVERAL: (cluster.url, settings),
            ONE: (cluster.url, settings | {"spark.executor.cores": "1"}),
        })  # fmt: skip


def _compare(bench: Bench, target: str, layouts: Mapping[str, tuple[str, dict[str, str]]]) -> None:
    size = Size(
        n_state=bench.size(40_000, 2_000),
        n_touched=bench.size(2_000, 100),
        n_batches=N_FIRST + bench.size(12, 4),
        n_queries=bench.size(10_000, 100),
    )
    with tempfile.TemporaryDirectory() as folder:
        write_streams(Path(folder), size)
        reports = {name: _run(Path(folder), *layout) for name, layout in layouts.items()}
    for operator in OPERATORS:
        several, one = reports[SEVERAL][operator], reports[ONE][operator]
        if several.n_answers != one.n_answers:
            raise AnswersDifferError(f"{operator}: {sum(several.n_answers):,} answers and {sum(one.n_answers):,}")
        seconds = []
        for name, each in ((SEVERAL, several), (ONE, one)):
            warm = each.seconds[N_FIRST:]
            seconds.append(statistics.median(warm))
            bench.record(target, operator, name, seconds[-1], runs=warm, n_rows=size.n_touched)
        bench.verdict(target, operator, "share of full loads", several.share_full(N_FIRST), MOST_FULL)
        bench.verdict(target, operator, "times one slot per executor", seconds[0] / seconds[1], MOST_TIMES)


def _run(folder: Path, master: str, settings: dict[str, str]) -> dict[str, Reports]:
    """The reports of all streams, which run in a session of their own process."""
    settings = settings | {"spark.sql.shuffle.partitions": "4"}
    command = [sys.executable, "-m", "benchmarks.slot_streams", str(folder), master, json.dumps(settings)]
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return {name: Reports(**each) for name, each in json.loads(done.stdout.splitlines()[-1]).items()}
