"""Executors with several slots: after the first micro-batches, workers rarely load the whole state of a shard."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from spark.pipelines import JAVA

from benchmarks.slot_streams import OPERATORS, Reports, Size, write_streams
from tests.docs_pages import ROOT

pytestmark = pytest.mark.matrix
N_SLOTS, N_BATCHES = 4, 30
# A worker loads a shard when it meets it first. If workers are chosen at random, three of four have met it by then.
N_FIRST = 12
MOST_FULL = 0.05


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """What the micro-batches of all operators report on one executor with four slots."""
    folder, scratch = tmp_path_factory.mktemp("streams"), tmp_path_factory.mktemp("scratch")
    write_streams(folder, Size(n_state=4_000, n_touched=200, n_batches=N_BATCHES, n_queries=200))
    settings = {
        "spark.executor.memory": "1g",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": str(N_SLOTS),
    }
    master = f"local-cluster[1,{N_SLOTS},2048]"
    command = [sys.executable, "-m", "benchmarks.slot_streams", str(folder), master, json.dumps(settings)]
    java = f"{JAVA} -Djava.io.tmpdir={scratch}"
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"JAVA_TOOL_OPTIONS": java, "PYTHONPATH": str(ROOT / "src"), "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-8000:]
    return {name: Reports(**each) for name, each in json.loads(done.stdout.splitlines()[-1]).items()}


@pytest.mark.parametrize("name", OPERATORS)
def test_few_steps_load_the_whole_state_of_a_shard(reports, name):
    found = reports[name]

    assert len(found.seconds) == N_BATCHES
    assert min(found.n_steps) == max(found.n_steps) >= N_SLOTS  # each shard once per micro-batch
    assert sum(found.n_full[:N_FIRST]) > 0  # several workers take part
    assert found.share_full(N_FIRST) <= MOST_FULL, found.n_full
    assert sum(found.n_answers) > 100
