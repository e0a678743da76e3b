"""Jobs on a standalone cluster: spark-submit with the package in three ways, and a client of Spark Connect.

Query sets are larger than a task may be, and the workers behave as if they ran on other hosts than the driver.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from spark import ticks
from spark.streams import write_rows

from tests.deploy.environments import run
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


@pytest.mark.matrix
def test_a_job_with_a_packed_environment(standalone, environments, environment, directory):
    python = environment("packed", f"{environments.wheel()}[spark]")
    archive = directory / "environment.tar.gz"
    pack = [sys.executable, "-m", "venv_pack", "-q", "-p", python.parents[1], "-o", archive]
    subprocess.run(pack, check=True)
    (directory / "environment").symlink_to(python.parents[1])  # the driver uses the environment itself

    told = check_answers(
        standalone.submit(
            JOB,
            directory,
            options=["--archives", f"{archive}#environment"],
            cwd=directory,
            PYSPARK_PYTHON="./environment/bin/python",
        )
    )

    prefixes = {Path(prefix) for prefix, _ in told["workers"]}
    assert {prefix.name for prefix in prefixes} == {"environment"}
    assert not prefixes & {directory / "environment", python.parents[1]}  # it was unpacked for the executors
    assert all(Path(package).is_relative_to(prefix) for prefix, package in told["workers"])


@pytest.mark.matrix
def test_a_client_of_a_connect_server_without_java(standalone, environments, environment, directory):
    """It has only pyspark-client, of the newest release up to that of the server."""
    client = environment("client", str(environments.wheel()), f"pyspark-client<={pyspark.__version__}")

    with standalone.connect_server(*FOR_WORKERS) as address:
        printed = run(client, JOB, directory, address, cwd=directory)

    told = check_answers(printed[-1])
    assert Path(told["driver"]).is_relative_to(client.parents[1])
    assert {Path(package).parents[1] for _, package in told["workers"]} == {ROOT / "src"}
