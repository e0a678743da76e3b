"""`vedette run` while the registry's PostgreSQL is stopped: briefly, and for longer than retry_seconds."""

from __future__ import annotations

import json
import os
import re
import threading
import time

import postgres
import pytest

import vedette as vd
from tests.sinks import read_committed

SCHEMA = "symbol string, price double, ts timestamp"
N_FILES = 6  # one per micro-batch
PIPELINE = """
checkpoint = "{folder}/checkpoint"
trigger = "available now"
[source]
format = "json"
path = "{folder}/ticks"
options = {{ maxFilesPerTrigger = 1 }}
[registry]
url = "{url}"
set = "alerts"
retry_seconds = {retry_seconds}
on_registry_outage = "{on_outage}"
[operator]
kind = "border"
shards = 2
key = "symbol"
time = "ts"
[[sink]]
name = "events"
format = "parquet"
path = "{folder}/events"
[spark]
settings = {{ "spark.sql.shuffle.partitions" = 2 }}
"""


@pytest.fixture
def cluster():
    try:
        made = postgres.cluster()
    except postgres.UnavailableError as reason:
        pytest.skip(f"not run on PostgreSQL: {reason}")
    yield made
    if made._server is None:
        made.start()


@pytest.fixture
def url(cluster):
    """A registry with one alert."""
    made = cluster.new_database()
    registry = vd.Registry(made)
    registry.create("alerts", kind="border", schema=SCHEMA)
    registry.add("alerts", "cheap", "price < 40")
    registry.close()
    yield made
    if cluster._server is None:
        cluster.start()
    cluster.drop_database(made)


@pytest.fixture
def write(tmp_path, url):
    """Write ticks that enter and exit the alert, one file per micro-batch, and the pipeline file."""
    (tmp_path / "ticks").mkdir()

    def write_ticks(number):
        ticks = [
            {"symbol": symbol, "price": price, "ts": f"2026-03-02T14:{number:02d}:00Z"}
            for symbol, price in (("IBM", 39.0 + 2 * (number % 2)), ("SAP", 39.0 + number))
        ]
        file = tmp_path / "ticks" / f"{number}.json"
        file.write_text("\n".join(map(json.dumps, ticks)))
        os.utime(file, (time.time() - N_FILES + number,) * 2)  # Spark reads the oldest first

    for number in range(N_FILES):
        write_ticks(number)

    def write_file(retry_seconds, on_outage="stop", n_more=0):
        for number in range(N_FILES, N_FILES + n_more):
            write_ticks(number)
        path = tmp_path / "pipeline.toml"
        path.write_text(PIPELINE.format(folder=tmp_path, url=url, retry_seconds=retry_seconds, on_outage=on_outage))
        return path

    return write_file


EVENTS = sorted(
    [("IBM", number, ("enter", "exit")[number % 2]) for number in range(N_FILES)]
    + [("SAP", 0, "enter"), ("SAP", 1, "exit")]
)


def read_events(folder):
    """The rows of the sink: key, minute and event."""
    rows = read_committed(folder / "events")
    assert {row["query"] for row in rows} <= {"cheap"}
    return sorted((row["key"], row["time"].minute, row["event"]) for row in rows)


class Outage(threading.Thread):
    """Stops PostgreSQL after a micro-batch; with `seconds`, starts it again after that time."""

    def __init__(self, cluster, folder, seconds=None):
        super().__init__()
        self.cluster, self.seconds = cluster, seconds
        self.commits = folder / "checkpoint" / "events" / "commits"
        self.n_done = 0  # micro-batches before it was started again
        self._has_ended = threading.Event()

    def run(self):
        while not self.count_done():
            if self._has_ended.wait(0.01):
                return  # the pipeline has failed before
        self.cluster.stop()
        if self.seconds is not None:
            time.sleep(self.seconds)
            self.n_done = self.count_done()
            self.cluster.start()

    def finish(self):
        """Wait for the end of the thread, after the pipeline has ended."""
        self._has_ended.set()
        self.join()

    def count_done(self):
        return len(list(self.commits.glob("[0-9]*")))


def test_the_pipeline_continues_if_postgresql_comes_back_in_time(spark, run, tmp_path, cluster, write):
    outage = Outage(cluster, tmp_path, seconds=3)

    outage.start()
    code, _, err = run("run", write(retry_seconds=60))
    outage.finish()

    assert code == 0, err
    assert 0 < outage.n_done < N_FILES
    assert "failed" not in err
    assert read_events(tmp_path) == EVENTS


def test_the_pipeline_stops_if_postgresql_stays_unreachable_and_nothing_is_lost(spark, run, tmp_path, cluster, write):
    outage = Outage(cluster, tmp_path)

    outage.start()
    start = time.monotonic()
    code, out, err = run("run", write(retry_seconds=5))
    outage.finish()

    assert (code, out) == (3, "")
    assert time.monotonic() - start < 250
    message = err.splitlines()[-1]
    assert message.startswith(
        "vedette: pipeline: failed: sink 'events': the registry's database postgresql://vedette:***@"
    )
    assert "cannot be reached: " in message
    assert re.search(
        r"; (tried \d+ times in \d+ seconds; )?check that it is running and that this host can connect to it$", message
    )
    assert "Traceback" not in err
    assert postgres.PASSWORD not in err
    before = read_events(tmp_path)
    assert before == [event for event in EVENTS if event in before]
    assert 0 < outage.count_done() < N_FILES

    code, _, err = run("run", write(retry_seconds=1))
    assert code == 4, err
    assert "cannot be reached: " in err

    cluster.start()
    code, _, err = run("run", write(retry_seconds=30))
    assert code == 0, err
    assert read_events(tmp_path) == EVENTS


def test_the_pipeline_continues_with_the_last_version_if_the_file_says_so(spark, run, tmp_path, cluster, url, write):
    outage = Outage(cluster, tmp_path)

    outage.start()
    code, _, err = run("run", write(retry_seconds=1, on_outage="last"))
    outage.finish()

    assert code == 0, err
    assert re.search(r"continues with version 1 of set 'alerts', the last known one", err)
    assert read_events(tmp_path) == EVENTS

    cluster.start()
    registry = vd.Registry(url)
    assert max(each.last_batch for each in registry.pins()) < N_FILES - 1  # not all pins could be written
    assert registry.replace("alerts", "cheap", "price < 41") == 2
    code, _, err = run("run", write(retry_seconds=30, on_outage="last", n_more=1))
    assert code == 0, err
    (stream,) = registry.pins()
    pinned = [registry.pin(stream.stream, batch, "alerts") for batch in range(stream.first_batch, N_FILES + 1)]

    assert (stream.first_batch, stream.last_batch) == (0, N_FILES)
    assert pinned == [1] * N_FILES + [2]
    assert {row["version"] for row in read_committed(tmp_path / "events")} == {1, 2}
    registry.close()
