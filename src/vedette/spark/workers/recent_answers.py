"""Writes the last answers of a task into a registry. A database that does not answer delays a task only once."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from vedette.registry.pipelines import write_events
from vedette.registry.store.database import Database
from vedette.spark.workers.following import BATCH

_WAIT_SECONDS = 0.5  # that a task waits for its write
_PAUSE_SECONDS = 60.0  # without a write after one that failed or took longer
_databases: dict[str, Database] = {}
_paused_until: dict[str, float] = {}


def keep_last(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The answers as they are; the last `keep` of them are written when the task has seen all."""
    last: deque[pa.RecordBatch] = deque()
    n_kept = 0
    for batch in batches:
        if batch.num_rows:
            last.append(batch.slice(max(0, batch.num_rows - plan["keep"])))
            n_kept += last[-1].num_rows
            while n_kept - last[0].num_rows >= plan["keep"]:
                n_kept -= last.popleft().num_rows
        yield batch
    if last:
        _write_soon(plan, list(last))


def _write_soon(plan: dict[str, Any], batches: list[pa.RecordBatch]) -> None:
    url = plan["url"]
    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty(BATCH)
    if context is None or number is None or time.monotonic() < _paused_until.get(url, 0.0):
        return
    task, done = context.partitionId(), threading.Event()

    def write() -> None:
        try:
            database = _databases.setdefault(url, Database(url, retry_seconds=_WAIT_SECONDS, max_connections=1))
            texts = [json.dumps(row, default=str) for batch in batches for row in batch.to_pylist()]
            write_events(database, plan["source"], int(number), task, texts, keep=plan["keep"])
            done.set()
        except Exception:  # recent answers are for people; the stream goes on without them
            pass

    thread = threading.Thread(target=write, name="vedette-recent-answers", daemon=True)
    thread.start()
    thread.join(_WAIT_SECONDS)
    if not done.is_set():
        _paused_until[url] = time.monotonic() + _PAUSE_SECONDS
