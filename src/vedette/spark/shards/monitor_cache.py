"""Monitors that a worker keeps in memory between batches, within one limit for all workers of a host.

If there is no room, the monitor that was used last is not kept. Shards take turns, so dropping the least recently used
monitor instead would drop each one just before its turn. Monitors that were not used for a while are dropped first:
their stream has ended, or their shard has moved to another host.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from vedette.errors import count
from vedette.host_files.memory_budget import MemoryBudget

IDLE_SECONDS = 60.0  # Spark also ends workers that are idle for this time
_log = logging.getLogger(__name__)


class Monitor(Protocol):
    """Stores the rows of a shard between batches, for any operator."""

    @property
    def state_nbytes(self) -> int:
        """The memory of the state, without what all monitors of a query set share."""

    @property
    def n_rebuilt(self) -> int:
        """How often the indexes over the state were built from all of its rows."""

    def save(self) -> bytes: ...

    def load(self, blob: bytes) -> None: ...

    def take_delta(self) -> bytes: ...

    def apply_delta(self, blob: bytes) -> None: ...


@dataclass(frozen=True)
class _Kept:
    tag: Any
    monitor: Monitor
    n_bytes: int
    used_at: float


@dataclass
class MonitorCache:
    """Monitors by place, each with the tag of its state."""

    budget: MemoryBudget = field(default_factory=lambda: MemoryBudget("monitors"))
    _kept: OrderedDict[Hashable, _Kept] = field(default_factory=OrderedDict)  # the last used one is the last
    _has_warned: bool = False

    @property
    def places(self) -> list[Hashable]:
        return list(self._kept)

    @property
    def n_bytes(self) -> int:
        return sum(each.n_bytes for each in self._kept.values())

    def take(self, place: Hashable) -> tuple[Any, Any]:
        """Remove and return a tag and its monitor: it is about to change, and is put back after its state is saved."""
        kept = self._kept.pop(place, None)
        return (None, None) if kept is None else (kept.tag, kept.monitor)

    def put(self, place: Hashable, tag: Any, monitor: Monitor, limit: int) -> None:
        """Keep a monitor, unless the monitors of all workers of this host would exceed `limit` bytes."""
        now = time.monotonic()
        self._kept[place] = _Kept(tag, monitor, monitor.state_nbytes, now)
        wanted = self.n_bytes
        with self.budget.turn():
            room = self.budget.room(wanted, limit)
            for idle in [key for key, each in self._kept.items() if each.used_at < now - IDLE_SECONDS]:
                if self.n_bytes > room:
                    del self._kept[idle]
            while self.n_bytes > room:
                self._kept.popitem()
            self.budget.use(self.n_bytes, wanted, limit)
        if place not in self._kept and not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the state of a shard (%s) is read again in each batch: the monitors of this host exceed %s (setting "
                "monitor_cache_bytes)",
                count(monitor.state_nbytes, "byte"),
                count(limit, "byte"),
            )
