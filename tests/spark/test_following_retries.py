"""Workers and executors of a cluster die during batches, and Spark retries their tasks after the set has changed."""

from __future__ import annotations

import os
import signal
from collections import Counter

import pytest
from spark import followed_sets
from spark.followed_sets import read_pins
from spark.pipelines import CLUSTER, Pipeline
from spark.processes import find_below

import vedette as vd

STREAMS = ("match", "border")
N_BATCHES = 2
LOWS = range(0, 60, 5)  # of queries that are always active, so that every task has answers
FIRST = 1 + len(LOWS)  # the version that streams begin with


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The directory of streams whose workers died in the first batch, and an executor in the second."""
    directory = tmp_path_factory.mktemp("retries")
    url = f"sqlite:///{directory / 'queries.db'}"
    followed_sets.create_sets(url, STREAMS)
    followed_sets.write_sources(directory, N_BATCHES, n_rows=16)
    (directory / "url").write_text(url)
    for name in ("held", "go"):
        (directory / name).mkdir()
    registry = vd.Registry(url)
    for stream in STREAMS:
        for low in LOWS:
            registry.add(stream, f"from {low}", **followed_sets.to_query(stream, low))
    with Pipeline("retries_pipeline.py", directory) as pipeline:
        pipeline.start(log_level="OFF", **CLUSTER)
        for stream in STREAMS:
            for batch, end in enumerate((end_workers, end_executor)):
                pipeline.wait_until(lambda *which: len(held(directory, *which)) == 2, stream, batch)  # on each executor
                version = FIRST + 1 + batch
                given = followed_sets.to_query(stream, low_of_base(version))
                assert registry.replace(stream, "base", **given) == version
                end(pipeline, list(held(directory, stream, batch).values()))
                (directory / "go" / f"{stream}-{batch}").touch()
        pipeline.finish()
    registry.close()
    return directory, read_pins(url)


def low_of_base(version):
    return 10 * (version - FIRST)


def held(directory, stream, batch):
    """The process of each task that has waited, by partition and number of the attempt."""
    notes = (directory / "held").glob(f"{stream}-{batch}-*[0-9]")
    return {tuple(note.name.split("-")[2:]): int(note.read_text()) for note in notes}


def end_workers(pipeline, waiting):
    """Kill all Python workers of the executors."""
    below = find_below(pipeline.process.pid)
    workers = [pid for pid in below if is_daemon(below, below[pid][0]) and find_executor(below, pid)]
    assert set(waiting) <= set(workers)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


def end_executor(pipeline, waiting):
    """Kill the Java process of a waiting Python worker."""
    os.kill(find_executor(find_below(pipeline.process.pid), waiting[0]), signal.SIGKILL)


def is_daemon(below, pid):
    """Whether the process is a daemon that forks Python workers."""
    return pid in below and "pyspark.daemon" in below[pid][1]


def find_executor(below, pid):
    """The executor of a process, if any."""
    while pid in below:
        parent, command = below[pid]
        if "CoarseGrainedExecutorBackend" in command:
            return pid
        pid = parent
    return None


@pytest.mark.parametrize("stream", STREAMS)
def test_a_retried_task_answers_with_the_pinned_version(run, stream):
    directory, pins = run
    always = {f"from {low}": (low,) for low in LOWS}
    first, second = ({**always, "base": (low_of_base(version),)} for version in (FIRST, FIRST + 1))
    states = {FIRST: first, FIRST + 1: second}
    followed_sets.check_answers(directory, stream, pins[stream], states)

    assert pins[stream] == {0: FIRST, 1: FIRST + 1}
    for batch, n_least in enumerate((2, 1)):
        tries = Counter(partition for partition, _ in held(directory, stream, batch))
        assert sum(n > 1 for n in tries.values()) >= n_least
