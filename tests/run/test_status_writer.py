"""A pipeline writes its status into its registry, and goes on if that is not possible."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import vedette as vd
from vedette.pipeline.file import PipelineFile
from vedette.registry import pipelines
from vedette.registry.pipelines import list_pipelines
from vedette.registry.store.database import Database
from vedette.run import status_writer
from vedette.run.progress import Batch
from vedette.run.status import Status
from vedette.run.status_writer import StatusWriter

BATCH = Batch("out", 3, "5a5f", 1000, 7, 0, 1.25, 40, 2.5, 0, 0)


def plan_of(url: str) -> PipelineFile:
    return PipelineFile.model_validate(
        {
            "name": "ticks",
            "checkpoint": "/none",
            "source": {"format": "rate"},
            "registry": {"url": url, "set": "alerts"},
            "operator": {"kind": "match"},
            "sink": [{"format": "noop", "name": "out"}],
        }
    )


def test_the_status_of_a_pipeline_is_in_its_registry(tmp_path: Path) -> None:
    registry = vd.Registry(f"sqlite:///{tmp_path}/a.db")
    status = Status.begin("ticks", ["out"])
    writer = StatusWriter(plan_of(f"sqlite:///{tmp_path}/a.db"), status, lambda text: text.replace("secret", "*"))
    writer.start()
    status.take(BATCH, 4)
    status.state, status.error = "failed", "with secret"
    writer.close()

    (found,) = list_pipelines(registry.database)

    assert (found.name, found.set_name, found.operator, found.state, found.error) == (
        "ticks", "alerts", "match", "failed", "with *",
    )  # fmt: skip
    wanted = {
        "batch": 3,
        "rows_in_total": 1000,
        "version": 4,
        "lag_rows": 40,
        "lag_seconds": 2.5,
        "batch_seconds": 1.25,
    }
    assert wanted.items() <= found.sinks["out"].items()


@pytest.mark.parametrize("url", ["sqlite:///{folder}/none.db", "postgresql://nobody@127.0.0.1:1/none", "nonsense"])
def test_a_registry_that_cannot_be_written_delays_a_pipeline_only_at_its_end(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_writer, "_LAST_SECONDS", 0.2)
    writer = StatusWriter(plan_of(url.format(folder=tmp_path)), Status.begin("ticks", ["out"]))
    start = time.monotonic()

    writer.start()
    writer.wake()
    writer.close()

    assert time.monotonic() - start < 5
    assert list(tmp_path.iterdir()) == []


def test_a_status_that_fails_is_written_again_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = vd.Registry(f"sqlite:///{tmp_path}/a.db")
    n_calls, is_written = 0, threading.Event()

    def write(database: Database, run: pipelines.PipelineRun) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 1:
            raise RuntimeError("lost")
        pipelines.write_run(database, run)
        is_written.set()

    monkeypatch.setattr(status_writer, "write_run", write)
    monkeypatch.setattr(status_writer, "BEAT_SECONDS", 0.01)
    writer = StatusWriter(plan_of(f"sqlite:///{tmp_path}/a.db"), Status.begin("ticks", ["out"]))
    writer.start()

    assert is_written.wait(10)
    assert [each.state for each in list_pipelines(registry.database)] == ["starting"]
    writer.close()
