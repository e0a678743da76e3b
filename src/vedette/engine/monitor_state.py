"""The state of a border monitor as bytes: all of it, or what has changed since.

Keys and queries stand there by their own names, values as they are, so that a state fits every later version of the
query set. It does not fit another set: a checksum of the set's history tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.columns import Column
from vedette.engine import snapshot
from vedette.errors import SnapshotError
from vedette.operators.pair_table import Pairs, PairTable

if TYPE_CHECKING:
    from vedette.engine.monitor import BorderMonitor

_KIND = "border state"


class ChangeLog:
    """Which keys have changed since the state was last saved."""

    def __init__(self) -> None:
        self._slots: list[NDArray[np.int32]] = []
        self._freed: list[Any] = []

    def note(self, slots: NDArray[np.int32]) -> None:
        if len(slots):
            self._slots.append(slots)

    def note_freed(self, keys: Any) -> None:
        self._freed.append(keys)

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        self._slots = [moved[slots] for slots in self._slots]
        self._slots = [slots[slots >= 0] for slots in self._slots]

    def take(self) -> tuple[NDArray[np.int32], list[Any]]:
        """The slots of keys that changed, each once, and the keys that were freed."""
        slots = np.unique(np.concatenate(self._slots)) if self._slots else np.empty(0, np.int32)
        freed, self._slots, self._freed = self._freed, [], []
        return slots, freed


def save(monitor: BorderMonitor) -> bytes:
    monitor.changes.take()
    everything = np.flatnonzero(monitor.keys.lives[: len(monitor.keys)]).astype(np.int32)
    return snapshot.to_bytes(_content(monitor, everything, []))


def take_delta(monitor: BorderMonitor) -> bytes:
    slots, freed = monitor.changes.take()
    return snapshot.to_bytes(_content(monitor, slots[monitor.keys.lives[slots]], freed))


def load(monitor: BorderMonitor, blob: bytes) -> None:
    content = _check(monitor, blob)
    monitor.clear()
    _apply(monitor, content)


def apply_delta(monitor: BorderMonitor, blob: bytes) -> None:
    _apply(monitor, _check(monitor, blob))


def _content(monitor: BorderMonitor, slots: NDArray[np.int32], freed: list[Any]) -> dict[str, Any]:
    keys = monitor.keys
    version = monitor.queries.version
    is_chosen = np.zeros(len(keys), np.bool_)
    is_chosen[slots] = True
    rows = keys.rows(slots)
    return {
        "kind": _KIND,
        "schema": str(monitor.queries.schema),
        "history": [version, monitor.queries.history_mark(version)],
        "columns": [monitor.options.key, monitor.options.time],
        "time_type": monitor.time_type,
        "clock": None if monitor.clock is None else monitor.clock,
        "counts": [monitor.n_late, monitor.n_null_keys, monitor.n_failed],
        "keys": keys.keys.take(slots),
        "freed": freed,
        "times": keys.times[slots],
        "versions": keys.versions[slots],
        "rows": {name: [column.values, column.valid] for name, column in rows.items()},
        "lingering": _pairs_content(monitor.lingering, is_chosen, slots),
        "pending": _pairs_content(monitor.pending, is_chosen, slots),
    }


def _pairs_content(table: PairTable, is_chosen: NDArray[np.bool_], slots: NDArray[np.int32]) -> list[Any]:
    """Pairs, with the place of their key among the saved ones instead of its slot."""
    pairs = table.at(is_chosen)
    return [np.searchsorted(slots, pairs.slots).astype(np.int32), pairs.ids, pairs.times, pairs.reasons]


def _check(monitor: BorderMonitor, blob: bytes) -> dict[str, Any]:
    content = snapshot.from_bytes(blob, "border state")
    if content.get("kind") != _KIND:
        raise SnapshotError("the bytes are no state of a border monitor; give it what `save` returned")
    queries = monitor.queries
    version, mark = content["history"]
    if content["schema"] != str(queries.schema):
        raise SnapshotError(
            f"the state was saved with the schema {content['schema']!r}, but the queries have {str(queries.schema)!r}"
        )
    if version > queries.version:
        raise SnapshotError(
            f"the state was saved at version {version} of the query set, which is at version {queries.version} here; "
            f"load the set that was saved with it"
        )
    if queries.history_mark(version) != mark:
        raise SnapshotError(
            "the state was saved with another query set, whose changes were not the same; load the set that was saved "
            "with it, or begin without a state"
        )
    if content["columns"] != [monitor.options.key, monitor.options.time]:
        key, time = content["columns"]
        raise SnapshotError(
            f"the state was saved with key {key!r} and time {time!r}; this monitor has key {monitor.options.key!r} and "
            f"time {monitor.options.time!r}"
        )
    return content


def _apply(monitor: BorderMonitor, content: dict[str, Any]) -> None:
    if content["time_type"]:
        monitor.set_time_type(content["time_type"])
    monitor.clock = content["clock"]
    monitor.n_late, monitor.n_null_keys, monitor.n_failed = content["counts"]
    keys = monitor.keys
    for freed in content["freed"]:
        slots = keys.keys.find(freed)
        _forget(monitor, slots[slots >= 0])
    if not len(content["keys"]):
        return
    slots = keys.find_slots(content["keys"])
    _drop_pairs(monitor, slots)
    fields = [field for field in monitor.queries.schema if field.name in content["rows"] or field.name in keys.columns]
    keys.use_fields(fields)
    rows = {name: Column(values, valid) for name, (values, valid) in content["rows"].items()}
    keys.put_some(slots, content["times"], content["versions"], rows)
    for table, name in ((monitor.lingering, "lingering"), (monitor.pending, "pending")):
        places, ids, times, reasons = content[name]
        table.put(Pairs(slots[places], ids, times, reasons))


def _forget(monitor: BorderMonitor, slots: NDArray[np.int32]) -> None:
    _drop_pairs(monitor, slots)
    monitor.keys.free(slots)


def _drop_pairs(monitor: BorderMonitor, slots: NDArray[np.int32]) -> None:
    is_chosen = np.zeros(len(monitor.keys), np.bool_)
    is_chosen[slots] = True
    monitor.lingering.take(is_chosen)
    monitor.pending.take(is_chosen)
