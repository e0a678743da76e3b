"""The pipeline of docs/declarative-pipelines.md runs with `spark-pipelines`, and its tables have what the page says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from docs_pages import ROOT, blocks

import vedette as vd

ROWS = """{"symbol": "IBM", "price": 39.5, "ts": "2026-03-02T10:00:00Z"}
{"symbol": "SAP", "price": 9.5, "ts": "2026-03-02T10:00:01Z"}
{"symbol": "IBM", "price": 41.5, "ts": "2026-03-02T10:00:02Z"}
"""


def write_files(folder: Path) -> None:
    """The files of the page, in a folder instead of /data, and their rows and queries."""
    for block in blocks("docs/declarative-pipelines.md"):
        if block.file:
            path = folder / block.file
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.code.replace("/data/", f"{folder}/").replace("shards=16", "shards=2"))
    (folder / "ticks").mkdir()
    (folder / "ticks" / "first.json").write_text(ROWS)
    registry = vd.Registry(f"sqlite:///{folder}/alerts.db")
    registry.create("alerts", schema="symbol string, price double, ts timestamp")
    registry.add("alerts", "any-cheap", "price < 40")
    registry.close()


def run_pipeline(folder: Path) -> subprocess.CompletedProcess[str]:
    binaries = Path(sys.executable).parent
    environment = os.environ | {
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [binaries / "spark-pipelines", "run", "--spec", "spark-pipeline.yml"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


def read_table(folder: Path, name: str) -> list[dict[str, object]]:
    rows = ds.dataset(folder / "spark-warehouse" / name, format="parquet").to_table().to_pylist()
    return [{key: value for key, value in row.items() if key not in ("ts", "time", "reason")} for row in rows]


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_pipeline_of_the_page_writes_its_tables(tmp_path):
    write_files(tmp_path)

    done = run_pipeline(tmp_path)

    assert "Run is COMPLETED" in done.stdout + done.stderr, (done.stdout + done.stderr)[-5000:]
    assert read_table(tmp_path, "hits") == [
        {"symbol": "IBM", "price": 39.5, "query": "any-cheap", "version": 1},
        {"symbol": "SAP", "price": 9.5, "query": "any-cheap", "version": 1},
    ]
    assert read_table(tmp_path, "lists") == [
        {"symbol": "IBM", "price": 39.5, "queries": ["cheap-ibm"]},
        {"symbol": "SAP", "price": 9.5, "queries": []},
        {"symbol": "IBM", "price": 41.5, "queries": []},
    ]
    assert read_table(tmp_path, "events") == [
        {"key": "IBM", "query": "cheap-ibm", "event": "enter"},
        {"key": "IBM", "query": "cheap-ibm", "event": "exit"},
    ]
