"""Looks at a running pipeline, and keeps its status and what is shown up to date."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vedette.errors import VedetteError

if TYPE_CHECKING:
    from vedette.cli.run_display import Display
    from vedette.cli.run_status import Status
    from vedette.pipeline.file import RegistryPart
    from vedette.registry.registry import Registry
    from vedette.spark.running import Batch, Running

_COUNT_SECONDS = 5.0  # between two looks at how many queries stand
_PATIENCE_SECONDS = 2.0  # with a registry that does not answer, so that signals are still heard


@dataclass
class Watch:
    """What is asked of the registry about the set, beside what Spark tells of each micro-batch."""

    registry: Registry
    part: RegistryPart
    status: Status
    display: Display
    counted: float = -1e9

    @classmethod
    def open(cls, part: RegistryPart, status: Status, display: Display) -> Watch:
        from vedette import Registry

        return cls(Registry(part.url, create=False, patience=_PATIENCE_SECONDS), part, status, display)

    def look(self, running: Running) -> None:
        """Take note of the micro-batches that were done since the last look."""
        batches = running.new_batches()
        if batches and time.monotonic() - self.counted > _COUNT_SECONDS:
            self.counted = time.monotonic()
            standing = _unless_refused(lambda: self.registry.set(self.part.set).n_standing)
            self.status.n_queries = self.status.n_queries if standing is None else standing
        for batch in batches:
            self.display.show(self.status, self.status.take(batch, self._version_of(batch)))
        if not batches:
            self.display.show(self.status, None)

    def _version_of(self, batch: Batch) -> int | None:
        """The version that the micro-batch was answered with."""
        if self.part.at is not None:
            return self.part.at
        return _unless_refused(lambda: self.registry.pin(batch.query_id, batch.number, self.part.set))


def _unless_refused(ask: Callable[[], int]) -> int | None:
    """An answer of the registry; None where it cannot be had just now, which must not stop what runs."""
    try:
        return ask()
    except VedetteError:
        return None
