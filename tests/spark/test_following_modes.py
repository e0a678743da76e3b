"""Streams of all operators follow sets that two writers change. They are killed and restarted, also on clusters.

On SQLite and on PostgreSQL. Every row of the answers is that which plain comparison gives for its micro-batch at the
version that was pinned for it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import postgres
import pytest
from spark import followed_sets
from spark.followed_sets import KINDS, Writers, read_pins
from spark.pipelines import CLUSTER, CONNECT, Pipeline

N_BATCHES = 5
# The sessions of a run, of which the first two are killed: as the program starts its streams one after another, first
# when the joins are amid their batches, and then when the other two are.
LOCAL = {"master": "local[2]"}
RUNS = {"sqlite": [CLUSTER, LOCAL, CONNECT], "postgresql": [LOCAL, LOCAL, CLUSTER]}
KILLS = [("moving join", "band join", "window join"), ("border", "match")]


@dataclass
class Run:
    """The results of streams that have ended."""

    directory: object
    writers: Writers
    pins: dict  # by stream and batch
    pins_at_kills: list
    commits_at_kills: list  # by stream


@pytest.fixture(scope="module", params=[pytest.param("sqlite", marks=pytest.mark.matrix), "postgresql"])
def run(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("following")
    if request.param == "sqlite":
        yield follow(f"sqlite:///{directory / 'queries.db'}", directory, RUNS["sqlite"])
        return
    try:
        cluster = postgres.cluster()
    except postgres.UnavailableError as reason:
        pytest.skip(f"not run on PostgreSQL: {reason}")
    url = cluster.new_database()
    yield follow(url, directory, RUNS["postgresql"])
    cluster.drop_database(url)


def follow(url, directory, sessions):
    followed_sets.create_sets(url)
    followed_sets.write_sources(directory, N_BATCHES)
    (directory / "url").write_text(url)
    random, pins_at_kills, commits_at_kills = np.random.default_rng(3), [], []
    with Writers(url) as writers, Pipeline("following_pipeline.py", directory) as pipeline:
        for session, streams in zip(sessions, KILLS, strict=False):
            pipeline.start(**session)
            pipeline.wait_until(pipeline.count_commits, streams[-1])
            time.sleep(random.uniform(0, 0.5))
            pipeline.wait_until(is_in_mid_batch, pipeline, url, streams)
            pipeline.kill()
            pins_at_kills.append(read_pins(url))
            commits_at_kills.append({kind: pipeline.count_commits(kind) for kind in KINDS})
        pipeline.start(**sessions[-1])
        pipeline.finish()
    return Run(directory, writers, read_pins(url), pins_at_kills, commits_at_kills)


def is_in_mid_batch(pipeline, url, streams):
    """Whether one of these streams has pinned a batch that is not finished, and all can be restarted.

    Spark cannot continue from a checkpoint that has only a part of its first offsets.
    """
    if any(names and "0" not in names for names in map(pipeline.offset_files, KINDS)):
        return False
    pins = read_pins(url)
    return any(len(pins[stream]) > pipeline.count_commits(stream) for stream in streams)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_killed_and_restarted_streams_match_the_pinned_versions(run, kind):
    states = run.writers.active(kind)
    answers = followed_sets.check_answers(run.directory, kind, run.pins[kind], states)

    n_tasks = max(map(len, answers))
    # A match has a task per file, the others one per shard; shards without a pair of a moving join write nothing.
    assert n_tasks in {"match": range(4, 100), "moving join": range(2, 5)}.get(kind, [4])
    assert len(set(run.pins[kind].values())) >= 3


def test_a_batch_that_is_repeated_after_a_kill_keeps_its_pin(run):
    n_repeated = 0
    for pins, commits in zip(run.pins_at_kills, run.commits_at_kills, strict=True):
        for kind in KINDS:
            assert pins[kind].items() <= run.pins[kind].items()
            n_repeated += len(pins[kind]) - commits[kind]
    assert n_repeated
    for killed, commits in zip(KILLS, run.commits_at_kills, strict=True):
        assert all(0 < commits[kind] < len(run.pins[kind]) for kind in killed)
