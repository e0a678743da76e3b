"""`vedette run` with a Spark Connect server, which the tests start on the loopback interface."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

import vedette as vd
from tests.java_options import JAVA
from tests.ports import free_port
from tests.sinks import read_committed

SCHEMA = "symbol string, price double, ts timestamp"
PIPELINE = """
checkpoint = "${{HERE}}/checkpoint"
{trigger}
[source]
format = "json"
path = "${{HERE}}/ticks"
options = {{ maxFilesPerTrigger = 1 }}
{source}
[registry]
url = "sqlite:///${{HERE}}/alerts.db"
set = "alerts"
[operator]
kind = "border"
shards = 2
key = "symbol"
time = "ts"
[[sink]]
name = "events"
format = "parquet"
path = "${{HERE}}/events"
[spark]
remote = "sc://127.0.0.1:{port}"
settings = {{ "spark.sql.shuffle.partitions" = 2 }}
"""
AVAILABLE_NOW = 'trigger = "available now"'
FAILING = 'select = ["symbol", "ts", "if(price > 41.5, raise_error(\'no such price\'), price) AS price"]'


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """The port of a server."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": JAVA,
    }
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        until = time.monotonic() + 300
        while True:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield port
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


@pytest.fixture
def write(tmp_path):
    """A registry with an alert, ticks that enter and exit it, and the pipeline file."""
    registry = vd.Registry(f"sqlite:///{tmp_path}/alerts.db")
    registry.create("alerts", kind="border", schema=SCHEMA)
    registry.add("alerts", "cheap", "price < 40")
    (tmp_path / "ticks").mkdir()

    def write_file(port, prices, trigger=AVAILABLE_NOW, source=""):
        for minute, price in prices.items():
            tick = {"symbol": "IBM", "price": price, "ts": f"2026-03-02T14:{minute:02d}:00Z"}
            file = tmp_path / "ticks" / f"{minute}.json"
            file.write_text(json.dumps(tick))
            os.utime(file, (time.time() - 60 + minute,) * 2)  # Spark reads the oldest first
        path = tmp_path / "pipeline.toml"
        path.write_text(PIPELINE.format(port=port, trigger=trigger, source=source))
        return path

    return write_file


def command(file):
    program = [sys.executable, "-c", "from vedette.cli import main; main()"]
    return [*program, "run", str(file), "--log", "json"]


def run_alone(file):
    """Exit code and records of a run in a separate process, as a process has either a local or a remote Spark."""
    done = subprocess.run(command(file), capture_output=True, text=True, timeout=900)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()]


def events_of(folder):
    rows = read_committed(folder / "events")
    return sorted((row["time"].minute, row["event"], row["query"], row["version"]) for row in rows)


def test_a_killed_pipeline_on_a_spark_connect_server_continues(port, tmp_path, write):
    code, records = run_alone(write(port, {0: 41.0, 1: 39.0}))
    assert code == 0, records
    batches = [record for record in records if record["event"] == "batch" and record["rows_in"]]
    assert [(each["rows_in"], each["matches_out"], each["version"], each["queries"]) for each in batches] == [
        (1, 0, 1, 1),
        (1, 1, 1, 1),
    ]
    assert events_of(tmp_path) == [(1, "enter", "cheap", 1)]

    added = vd.Registry(f"sqlite:///{tmp_path}/alerts.db").add("alerts", "dear", "price > 100")
    killed = subprocess.Popen(command(write(port, {2: 101.0}, trigger="")), stderr=subprocess.PIPE, text=True)
    for line in killed.stderr:
        if json.loads(line)["event"] == "batch":
            break
    killed.kill()  # the query on the server continues
    killed.communicate()
    code, records = run_alone(write(port, {3: 39.5}))
    assert code == 0, records
    assert events_of(tmp_path) == [
        (1, "enter", "cheap", 1),
        (2, "enter", "dear", added),
        (2, "exit", "cheap", added),
        (3, "enter", "cheap", added),
        (3, "exit", "dear", added),
    ]


def test_a_failure_on_a_spark_connect_server_is_exit_code_3_with_its_reason(port, tmp_path, write):
    code, records = run_alone(write(port, {0: 42.0}, source=FAILING))

    assert code == 3
    assert records[-1]["event"] == "failed"
    assert "no such price" in records[-1]["reason"]
    assert "\n" not in records[-1]["reason"]


def test_a_spark_connect_server_that_does_not_answer_is_exit_code_4(run, write):
    code, _, err = run("run", write(free_port(), {0: 42.0}), "--quiet")

    assert code == 4
    assert err.startswith("vedette: spark.remote: no Spark Connect server answers at 127.0.0.1:")
    assert len(err.splitlines()) == 1
