"""Looks at a running pipeline, and keeps its status and what is shown up to date."""

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

_COUNT_SECONDS = 5.0  # between two looks at how many queries stand
RETRY_SECONDS = 2.0  # with a registry that does not answer, so that signals are still heard


@dataclass
class Watch:
    """What is asked of the registry about the set, beside what Spark tells of each micro-batch. It only reads."""

    registry: Registry
    part: RegistryPart
    status: Status
    display: Display
    counted: float = -1e9

    @classmethod
    def open(cls, part: RegistryPart, status: Status, display: Display) -> Watch:
        from vedette import Registry

        return cls(Registry(part.url, create=False, retry_seconds=RETRY_SECONDS), part, status, display)

    def look(self, running: Running) -> None:
        """Take note of the micro-batches that were done since the last look."""
        batches = running.new_batches()
        if batches and self._is_count_due():
            self.counted = time.monotonic()
            standing = _unless_refused(lambda: count_queries(self.registry, self.part))
            self.status.n_queries = self.status.n_queries if standing is None else standing
        for batch in batches:
            self.display.show(self.status, self.status.take(batch, self._version_of(batch)))
        if not batches:
            self.display.show(self.status, None)

    def _version_of(self, batch: Batch) -> int | None:
        return _unless_refused(lambda: find_pin(self.registry, self.part, batch.query_id, batch.number))

    def _is_count_due(self) -> bool:
        """Whether it is time to count the queries; those of a frozen version are counted once."""
        if self.part.version is not None and self.status.n_queries is not None:
            return False
        return time.monotonic() - self.counted > _COUNT_SECONDS


def _unless_refused(ask: Callable[[], int | None]) -> int | None:
    """An answer of the registry; None where it cannot be had just now, which must not stop what runs."""
    try:
        return ask()
    except VedetteError:
        return None
