"""Border monitoring on a cluster, killed again and again, and through Spark Connect; each in a process of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from spark import ticks

PIPELINE = Path(__file__).with_name("border_pipeline.py")
CLUSTER = {"master": "local-cluster[2,1,1024]", "spark.executor.memory": "512m"}
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # starts sooner
COMMITS_BEFORE_KILLS = (0, 2, 1)  # how many batches a run may finish; each is killed in the middle of the next
N_FILES = 8


@pytest.fixture
def start(tmp_path):
    """Starts the pipeline; all that it leaves behind when it is killed is inside the directory."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    started = []

    def start(**settings):
        settings = json.dumps(settings | {"spark.local.dir": str(scratch)})
        process = subprocess.Popen(
            [sys.executable, str(PIPELINE), settings, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"TMPDIR": str(scratch), "JAVA_TOOL_OPTIONS": f"{JAVA} -Djava.io.tmpdir={scratch}"},
            start_new_session=True,  # so that its Java process is killed with it
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            kill(process)


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def finish(process):
    out, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    return json.loads(out.splitlines()[-1])


def as_lists(events):
    return [list(event) for event in events]


def test_stream_and_batch_give_the_right_events_on_a_cluster(start, tmp_path):
    rows = ticks.make_rows(400)
    ticks.write_rows(rows, tmp_path / "rows", 2)

    answer = finish(start(**CLUSTER))

    assert answer["streamed"] == as_lists(ticks.expected_events(rows))
    assert answer["batch"] == answer["streamed"]


def test_a_stream_killed_again_and_again_goes_on_through_connect_and_no_event_is_lost_or_doubled(start, tmp_path):
    rows = ticks.make_rows(50 * N_FILES)
    ticks.write_rows(rows, tmp_path / "rows", N_FILES)
    choice = random.Random(5)

    def count(log):
        return len(list((tmp_path / "checkpoint" / log).glob("[0-9]*")))

    for n_commits in COMMITS_BEFORE_KILLS:
        process = start(master="local[2]")
        n_before = count("commits")
        while count("commits") < n_before + n_commits or count("offsets") <= count("commits"):
            assert process.poll() is None, process.communicate()[1] or "the stream was through before it was killed"
            time.sleep(0.01)
        time.sleep(choice.uniform(0, 0.8))
        kill(process)

    assert count("commits") < N_FILES
    answer = finish(start(remote="local[2]"))
    assert answer["is_connect"]
    assert answer["streamed"] == as_lists(ticks.expected_events(rows))
    assert answer["batch"] == answer["streamed"]
