"""Watches a running pipeline, and keeps its status and display up to date."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vedette.errors import VedetteError
from vedette.pipeline.registered_set import count_queries, find_pin

if TYPE_CHECKING:
    from vedette.pipeline.file import RegistryPart
    from vedette.registry.registry import Registry
    from vedette.run.display import Display
    from vedette.run.progress import Batch, Running
    from vedette.run.status import Status

_COUNT_SECONDS = 5.0  # between two counts of active queries
RETRY_SECONDS = 2.0  # for a registry that does not answer: short, so that signals are handled soon


@dataclass
class Watch:
    """Combines Spark's reports of micro-batches with what the registry knows about the set.

    It only reads, except that it removes queries with once="query" that all sinks have reported.
    """

    registry: Registry
    part: RegistryPart
    status: Status
    display: Display
    warn: Callable[[str], None] = lambda warning: None  # shows a warning of a worker
    removes_reported: bool = False
    counted: float = -1e9

    @classmethod
    def open(
        cls, part: RegistryPart, status: Status, display: Display, warn: Callable[[str], None], operator: str
    ) -> Watch:
        from vedette import Registry

        registry = Registry(part.url, create=False, retry_seconds=RETRY_SECONDS)
        return cls(registry, part, status, display, warn, operator == "border" and part.version is None)

    def look(self, running: Running) -> None:
        """Update the status with the micro-batches that ended since the last call."""
        batches = running.new_batches()
        if batches and self._is_count_due():
            self.counted = time.monotonic()
            n_active, _ = _try(lambda: count_queries(self.registry, self.part))
            self.status.n_queries = self.status.n_queries if n_active is None else n_active
        for batch in batches:
            for warning in batch.warnings:
                self.warn(warning)
            version, is_reached = self._version_of(batch)
            self.display.show(self.status, self.status.take(batch, version, is_reached))
        if not batches:
            self.display.show(self.status, None)
        elif self.removes_reported:
            self._remove_reported()

    def _version_of(self, batch: Batch) -> tuple[int | None, bool]:
        return _try(lambda: find_pin(self.registry, self.part, batch.query_id, batch.number))

    def _remove_reported(self) -> None:
        """Remove queries that all sinks have reported in committed micro-batches. A later look tries again."""
        done = [sink.last for sink in self.status.sinks.values()]
        streams = {batch.query_id: batch.number for batch in done if batch is not None}
        if len(streams) == len(done):
            _try(lambda: len(self.registry.remove_reported(self.part.set, streams)))

    def _is_count_due(self) -> bool:
        """Whether to count the queries now; those of a fixed version are counted once."""
        if self.part.version is not None and self.status.n_queries is not None:
            return False
        return time.monotonic() - self.counted > _COUNT_SECONDS


def _try(read: Callable[[], int | None]) -> tuple[int | None, bool]:
    """A value from the registry, and whether it could be reached. An error must not stop the pipeline."""
    try:
        return read(), True
    except VedetteError as error:
        return None, not getattr(error, "is_retryable", False)
