"""Writes the status of a running pipeline into its registry, in a thread of its own.

The pipeline never waits for it and never fails because of it: what cannot be written is written later, or not at all.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vedette import __version__
from vedette.registry.pipelines import BEAT_SECONDS, FINAL, PipelineRun, write_run
from vedette.registry.store.database import Database

if TYPE_CHECKING:
    from vedette.pipeline.file import PipelineFile
    from vedette.run.status import SinkStatus, Status

_RATE_SECONDS = 30.0  # over which the rate of rows is measured
_LAST_SECONDS = 2.0  # that an ending pipeline waits for the last write
_RETRY_SECONDS = 2.0
_MOST_ERROR_LENGTH = 2000


class StatusWriter:
    """Writes the status now, every few seconds, and when it changes. `close` writes the last one."""

    def __init__(self, plan: PipelineFile, status: Status, hide: Callable[[str], str] = str) -> None:
        self._plan, self._status, self._hide = plan, status, hide
        self._run = uuid.uuid4().hex
        self._seen: dict[str, deque[tuple[float, int]]] = {name: deque() for name in status.sinks}
        self._woken = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._write_for_ever, name="vedette-status", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Write soon: the state has changed."""
        self._woken.set()

    def close(self) -> None:
        """Write the last status, and wait a moment for it."""
        self._is_closed = True
        self._woken.set()
        self._thread.join(_LAST_SECONDS)

    def _write_for_ever(self) -> None:
        try:
            database = Database(self._plan.registry.url, retry_seconds=_RETRY_SECONDS, max_connections=1)
        except Exception:  # the pipeline itself reports what is wrong with the address
            return
        while True:
            is_last = self._is_closed
            self._woken.clear()
            with suppress(Exception):  # a status that cannot be written must not disturb the pipeline
                if not database.is_missing():  # connecting would create the file
                    write_run(database, self._read())
            if is_last:
                database.close()
                return
            self._woken.wait(BEAT_SECONDS)

    def _read(self) -> PipelineRun:
        status, plan = self._status, self._plan
        error = None if status.error is None else self._hide(status.error)[:_MOST_ERROR_LENGTH]
        state = status.state
        if self._is_closed and state not in FINAL:
            state = "stopped"
        return PipelineRun(
            self._run,
            plan.name,
            plan.registry.set,
            plan.operator.kind,
            socket.gethostname(),
            os.getpid(),
            __version__,
            state,
            status.n_queries,
            {name: self._facts(sink) for name, sink in status.sinks.items()},
            error,
        )

    def _facts(self, sink: SinkStatus) -> dict[str, Any]:
        """The progress of a sink, with the names of log fields."""
        batch = sink.last
        return {
            "batch": None if batch is None else batch.number,
            "rows_in_total": sink.n_rows,
            "matches_out_total": sink.n_answers,
            "malformed_total": sink.n_malformed,
            "rows_per_second": self._rate(sink),
            "batch_seconds": None if batch is None else round(batch.seconds, 3),
            "lag_rows": None if batch is None else batch.lag_rows,
            "lag_seconds": None if batch is None or batch.lag_seconds is None else round(batch.lag_seconds, 3),
            "version": sink.version,
            "dead_letters_total": sink.counts.get("dead_letters", 0) + sink.counts.get("bad_rows", 0),
        }

    def _rate(self, sink: SinkStatus) -> float | None:
        """Rows a second over the last seconds; None before there are two looks."""
        now, seen = time.monotonic(), self._seen[sink.name]
        seen.append((now, sink.n_rows))
        while len(seen) > 2 and now - seen[0][0] > _RATE_SECONDS:
            seen.popleft()
        since, n_rows = seen[0]
        return round((sink.n_rows - n_rows) / (now - since), 1) if now - since > 1 else None
