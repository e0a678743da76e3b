"""Jobs on a standalone cluster: spark-submit with the package in two ways.

Query sets are larger than a task may be, and the workers behave as if they ran on other hosts than the driver.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from spark import ticks
from spark.streams import write_rows

from tests.docs_pages import ROOT

JOB = Path(__file__).with_name("job.py")
ROWS = ticks.make_rows(300)
# The sources of this clone: the installed package may be that of another folder.
SOURCES = str(ROOT / "src")
FOR_WORKERS = ["--conf", f"spark.executorEnv.PYTHONPATH={SOURCES}"]


@pytest.fixture
def directory(tmp_path):
    write_rows(ROWS, tmp_path / "rows", 3)
    return tmp_path


def check_answers(printed):
    """Compare the answers of the job with plain comparisons; returns what it tells about the workers."""
    told = json.loads(printed.splitlines()[-1])
    hits = sorted(
        [row["symbol"], row["price"], int(row["ts"].timestamp()), query]
        for row in ROWS.to_pylist()
        for query in range(ticks.N_QUERIES)
        if query <= row["price"] <= query + ticks.WIDTH
    )
    assert told["hits"] == hits
    assert [tuple(event) for event in told["events"]] == ticks.expected_events(ROWS)
    assert min(told["copies"]) > 0  # Spark has sent the set to every executor
    return told


def test_a_job_with_the_same_python_everywhere(standalone, directory):
    told = check_answers(standalone.submit(JOB, directory, options=FOR_WORKERS, PYTHONPATH=SOURCES))

    assert {prefix for prefix, _ in told["workers"]} == {sys.prefix}
    assert {Path(package).parents[1] for _, package in told["workers"]} == {ROOT / "src"}


@pytest.mark.matrix
def test_a_job_with_a_wheel_as_a_python_file(standalone, environments, directory):
    archive = directory / "vedette.zip"  # spark-submit ignores other suffixes in the driver
    shutil.copy(environments.wheel(), archive)

    told = check_answers(standalone.submit(JOB, directory, options=["--py-files", archive]))

    assert {Path(package).parts[-3] for _, package in told["workers"]} == {"vedette.zip"}
    assert "vedette.zip" in told["driver"]
