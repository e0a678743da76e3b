"""A pipeline follows a set that two writers change, is killed and started again, on a cluster and through Connect.

Every row of the answer is that which plain comparison gives for its micro-batch at the version that was pinned for it.
"""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import postgres
import pyarrow.parquet as pq
import pytest
from engine import border_model
from spark import ticks
from spark.pipelines import CLUSTER
from spark.streams import read_cuts, write_rows

import vedette as vd

PIPELINE = "following_pipeline.py"
N_FILES = 6


@pytest.fixture
def postgres_url():
    try:
        cluster = postgres.cluster()
    except postgres.UnavailableError as reason:
        pytest.skip(f"not run on PostgreSQL: {reason}")
    made = cluster.new_database()
    yield made
    cluster.drop_database(made)


class Writers:
    """Two writers, each with its own connection and queries, that change a set until they are told to stop.

    `standing` has, by version, what stood then.
    """

    def __init__(self, url, name):
        self.url, self.name = url, name
        self.changes = {}  # by version: id, and its lower end or None
        self.errors = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(2)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self.errors

    def _write(self, number):
        try:
            registry, random, own = vd.Registry(self.url), np.random.default_rng(number), set()
            while not self._stop.wait(random.uniform(0, 0.2)):
                query = f"w{number}-{random.integers(0, 6)}"
                low = int(random.integers(0, 55))
                if query not in own:
                    version = registry.add(self.name, query, text_of(low))
                elif low % 3:
                    version = registry.replace(self.name, query, text_of(low))
                else:
                    version, low = registry.remove(self.name, query), None
                self.changes[version] = query, low
                (own.discard if low is None else own.add)(query)
            registry.close()
        except Exception as error:
            self.errors.append(error)

    def standing(self):
        now, states = {}, [{}]
        assert sorted(self.changes) == list(range(1, len(self.changes) + 1))
        for version in sorted(self.changes):
            query, low = self.changes[version]
            now = {each: told for each, told in now.items() if each != query}
            if low is not None:
                now[query] = (low,)  # an object of its own for each life
            states.append(now)
        return states


def text_of(low):
    return f"price BETWEEN {low} AND {low + 5}"


def read_pins(url, name, directory):
    """The version of each batch, as the registry has it."""
    stream = json.loads((directory / "checkpoint" / "metadata").read_text())["id"]
    registry = vd.Registry(url)
    n_batches = len(list((directory / "checkpoint" / "offsets").glob("[0-9]*")))
    pins = [registry.pin(stream, batch, name) for batch in range(n_batches)]
    registry.close()
    return pins


def batches_of(directory):
    """The rows of each micro-batch."""
    (cuts,) = read_cuts(directory / "checkpoint")
    for files in cuts:
        tables = [pq.read_table(directory / "rows" / f"{number:04}.parquet").to_pylist() for number in files]
        yield [row for table in tables for row in table]


def prepare(registry, url, directory, kind):
    registry.create("alerts", kind=kind, schema=ticks.SCHEMA)
    (directory / "url").write_text(url)
    (directory / "set").write_text("alerts")
    write_rows(ticks.make_rows(40 * N_FILES), directory / "rows", N_FILES)


def wait_for_batch(pipeline, n_commits):
    """Until so many more micro-batches are done and another has begun."""
    n_wanted = pipeline.count("commits") + n_commits
    while pipeline.count("commits") < n_wanted or pipeline.count("offsets") <= pipeline.count("commits"):
        assert pipeline.process.poll() is None, pipeline.process.communicate()[1] or "through before the kill"
        time.sleep(0.01)


def test_border_events_of_a_pipeline_killed_again_and_again_are_those_of_the_pinned_versions(pipeline, tmp_path):
    url = f"sqlite:///{tmp_path / 'alerts.db'}"
    prepare(vd.Registry(url), url, tmp_path, "border")
    known_pins, random = [], np.random.default_rng(3)
    with Writers(url, "alerts") as writers:
        for n_commits in (1, 1):
            pipeline.start(master="local[2]")
            wait_for_batch(pipeline, n_commits)
            time.sleep(random.uniform(0, 0.8))
            pipeline.kill()
            known_pins.append(read_pins(url, "alerts", tmp_path))
        pipeline.start(remote="local[2]")
        answer = pipeline.finish()["rows"]
    pins, states = read_pins(url, "alerts", tmp_path), writers.standing()

    for some in known_pins:
        assert pins[: len(some)] == some
    assert pins == sorted(pins)
    assert len(set(pins)) > 2
    model, forms, expected = border_model.Model(), {}, []
    for version, rows in zip(pins, batches_of(tmp_path), strict=True):
        for query, told in states[version].items():
            holds = (lambda row, low=told[0]: low <= row["price"] <= low + 5), lambda row: False
            forms.setdefault((query, id(told)), holds)
        model.forms = {query: forms[query, id(told)] for query, told in states[version].items()}
        for key, when, *rest in model.step(rows, key="symbol", time="ts"):
            expected.append([key, int(when.timestamp()), *rest, version])
    assert answer == sorted(expected)
    assert {row[4] for row in answer} >= {"first", "moved"}


def test_matches_on_a_cluster_that_follows_postgresql_and_is_killed_are_those_of_the_pinned_versions(
    pipeline, tmp_path, postgres_url
):
    prepare(vd.Registry(postgres_url), postgres_url, tmp_path, "match")
    with Writers(postgres_url, "alerts") as writers:
        pipeline.start(**CLUSTER)
        wait_for_batch(pipeline, 1)
        time.sleep(np.random.default_rng(5).uniform(0, 0.8))
        pipeline.kill()
        known = read_pins(postgres_url, "alerts", tmp_path)
        pipeline.start(**CLUSTER)
        answer = pipeline.finish()["rows"]
    states = writers.standing()
    pins = read_pins(postgres_url, "alerts", tmp_path)

    assert pins[: len(known)] == known
    expected = [
        [row["symbol"], row["price"], int(row["ts"].timestamp()), query, version]
        for version, rows in zip(pins, batches_of(tmp_path), strict=True)
        for row in rows
        for query, (low,) in states[version].items()
        if low <= row["price"] <= low + 5
    ]
    assert answer == sorted(expected)
    assert len(set(pins)) > 2
