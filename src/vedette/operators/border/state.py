"""The state of a border monitor as bytes: all of it, or what has changed since.

Keys and queries stand there by their own names, values as they are, so that a state fits every later version of the
query set. It does not fit another set: a checksum of the set's history tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.ids import INTEGER, STRING
from vedette.errors import QueryError, SnapshotError
from vedette.native.damage import check, check_shape, check_type, check_within
from vedette.operators.border.events import REASONS
from vedette.operators.border.pair_table import KeyQueryPairs, PairTable
from vedette.operators.state_checks import (
    check_clock,
    check_count,
    check_distinct_ids,
    check_history,
    check_ids,
    check_times,
    read_column,
)
from vedette.queries import snapshot

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor

_KIND = "border state"
_NAME, _ANEW = f"the saved {_KIND}", snapshot.start_anew(_KIND)


class ChangeLog:
    """Which keys have changed since the state was last saved; before it ever was, nothing is noted."""

    def __init__(self) -> None:
        self._is_on = False
        self._slots: list[NDArray[np.int32]] = []
        self._n_noted = self._n_distinct = 0
        self._freed: list[Any] = []

    def __copy__(self) -> ChangeLog:
        made = ChangeLog()
        made.__dict__.update(self.__dict__, _slots=list(self._slots), _freed=list(self._freed))
        return made

    def note(self, slots: NDArray[np.int32]) -> None:
        if self._is_on and len(slots):
            self._slots.append(slots)
            self._n_noted += len(slots)
            if self._n_noted > 4 * self._n_distinct + 65_536:  # where nobody saves for long
                self._slots = [np.unique(np.concatenate(self._slots))]
                self._n_noted = self._n_distinct = len(self._slots[0])

    def note_freed(self, keys: Any) -> None:
        if self._is_on:
            self._freed.append(keys)

    def move_slots(self, moved: NDArray[np.int32]) -> None:
        self._slots = [moved[slots] for slots in self._slots]
        self._slots = [slots[slots >= 0] for slots in self._slots]

    def take(self) -> tuple[NDArray[np.int32] | None, list[Any]]:
        """The slots of keys that changed, each once, and the keys that were freed; None: nothing was ever saved."""
        slots = np.unique(np.concatenate([np.empty(0, np.int32), *self._slots])) if self._is_on else None
        freed = self._freed
        self.__init__()  # type: ignore[misc]
        self._is_on = True
        return slots, freed


def save(monitor: BorderMonitor) -> bytes:
    monitor.changes.take()
    everything = np.flatnonzero(monitor.keys.lives[: len(monitor.keys)]).astype(np.int32)
    return snapshot.to_bytes(_content(monitor, everything, [], is_delta=False))


def take_delta(monitor: BorderMonitor) -> bytes:
    slots, freed = monitor.changes.take()
    if slots is None:
        slots = np.arange(len(monitor.keys), dtype=np.int32)
    return snapshot.to_bytes(_content(monitor, slots[monitor.keys.lives[slots]], freed, is_delta=True))


def load(monitor: BorderMonitor, blob: bytes) -> None:
    content = _check(monitor, blob)
    if content["is_delta"]:
        raise SnapshotError(
            "the bytes are a delta of a state; load what `save` returned, then apply the deltas in order"
        )
    with snapshot.refusing_damage(_NAME, _ANEW):
        monitor.clear()
        _apply(monitor, content)
    monitor.changes.take()


def apply_delta(monitor: BorderMonitor, blob: bytes) -> None:
    content = _check(monitor, blob)
    with snapshot.refusing_damage(_NAME, _ANEW):
        _apply(monitor, content)
    monitor.pack()


def _content(monitor: BorderMonitor, slots: NDArray[np.int32], freed: list[Any], *, is_delta: bool) -> dict[str, Any]:
    keys = monitor.keys
    version = monitor.queries.version
    is_chosen = np.zeros(len(keys), np.bool_)
    is_chosen[slots] = True
    rows = keys.rows(slots)
    return {
        "kind": _KIND,
        "is_delta": is_delta,
        "holds_back": _holds_back(monitor),
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
    """KeyQueryPairs, with the place of their key among the saved ones instead of its slot."""
    pairs = table.at(is_chosen)
    return [np.searchsorted(slots, pairs.slots).astype(np.int32), pairs.ids, pairs.times, pairs.reasons]


def _check(monitor: BorderMonitor, blob: bytes) -> dict[str, Any]:
    content = snapshot.from_bytes(blob, "border state")
    if snapshot.kind_of(content) != _KIND:
        raise SnapshotError("the bytes are no state of a border monitor; give it what `save` returned")
    with snapshot.refusing_damage(_NAME, _ANEW):
        _validate(monitor, content)
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
    if queries.history_mark(version) not in (None, mark):  # none where a registry has forgotten it
        raise SnapshotError(
            "the state was saved with another query set, whose changes were not the same; load the set that was saved "
            "with it, or begin without a state"
        )
    if version < queries.forgotten_version:
        raise SnapshotError(
            f"the state was saved at version {version} of the query set, and version {queries.forgotten_version} "
            f"removed or replaced queries that are not known any more; call retain() on the set before you change it"
        )
    for name, was in content["holds_back"].items():
        if was and not _holds_back(monitor)[name]:
            raise SnapshotError(
                f"the state was saved by a monitor with {name}; give this one {name} too, or begin anew"
            )
    _check_time(monitor, content["time_type"])
    if content["columns"] != [monitor.options.key, monitor.options.time]:
        key, time = content["columns"]
        raise SnapshotError(
            f"the state was saved with key {key!r} and time {time!r}; this monitor has key {monitor.options.key!r} and "
            f"time {monitor.options.time!r}"
        )
    return content


def _validate(monitor: BorderMonitor, content: dict[str, Any]) -> None:
    """Raise DamageError unless content from outside is what `_content` makes."""
    check_type(content["is_delta"], bool, "whether a state is a delta")
    check_type(content["holds_back"], dict[str, bool], "the options of a state")
    check_type(content["schema"], str, "the schema of a state")
    check(content["holds_back"].keys() == _holds_back(monitor).keys(), "the options of a state are missing")
    check_history(content["history"])
    version, time_type = content["history"][0], content["time_type"]
    check_type(content["columns"], list[str], "the columns of a state")
    check(len(content["columns"]) == 2, "the columns of a state are missing")
    check_clock(content["clock"], time_type)
    check(len(content["counts"]) == 3, "the counts of a state are missing")
    for counted in content["counts"]:
        check_count(counted, "a count of a state")
    known = monitor.keys.keys if content["is_delta"] else None
    n = check_distinct_ids(content["keys"], known, "the keys of a state")
    for freed in content["freed"]:
        check_distinct_ids(freed, known, "the freed keys of a state")
    check_times(content["times"], time_type, n)
    check_type(content["versions"], NDArray[np.int32], "the versions of keys")
    check_shape(content["versions"], (n,), "the versions of keys")
    check_within(content["versions"], 0, version, "the versions of keys")
    for name, (values, valid) in content["rows"].items():
        field = monitor.queries.schema.find(name)
        check(field is not None and field.name == name, "a state has a field that the rows have not")
        assert field is not None
        read_column(values, valid, field.type, n)
    for name in ("lingering", "pending"):
        places, ids, times, reasons = content[name]
        check_type(places, NDArray[np.int32], "the keys of pairs")
        check_shape(places, (len(places),), "the keys of pairs")
        check_within(places, 0, n - 1, "the keys of pairs")
        check_ids(ids, len(places), "the queries of pairs")
        check(not len(places) or _is_of_kind(monitor, ids), "the queries of pairs are of another kind")
        check_times(times, time_type, len(places))
        check_type(reasons, NDArray[np.int8], "the reasons of pairs")
        check_shape(reasons, (len(places),), "the reasons of pairs")
        check_within(reasons, 0, len(REASONS) - 1, "the reasons of pairs")


def _is_of_kind(monitor: BorderMonitor, ids: Any) -> bool:
    kind = monitor.queries.view().ids.kind
    return kind in (None, INTEGER if isinstance(ids, np.ndarray) else STRING)


def _holds_back(monitor: BorderMonitor) -> dict[str, bool]:
    """Which options let a state hold events back, that no other monitor would report."""
    options = monitor.options
    return {"dwell": options.dwell is not None, "margin": bool(options.margins(monitor.queries.schema))}


def _check_time(monitor: BorderMonitor, time_type: str) -> None:
    if not time_type:
        return
    if monitor.time_type not in ("", time_type):
        raise SnapshotError(f"the state was saved with times of type {time_type}; this monitor has {monitor.time_type}")
    try:
        monitor.options.check_durations(time_type)
    except QueryError as error:
        raise SnapshotError(f"the state was saved with times of type {time_type}, where {error}") from None


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
        table.put(KeyQueryPairs(slots[places], ids, times, reasons))


def _forget(monitor: BorderMonitor, slots: NDArray[np.int32]) -> None:
    _drop_pairs(monitor, slots)
    monitor.keys.free(slots)


def _drop_pairs(monitor: BorderMonitor, slots: NDArray[np.int32]) -> None:
    is_chosen = np.zeros(len(monitor.keys), np.bool_)
    is_chosen[slots] = True
    monitor.lingering.take(is_chosen)
    monitor.pending.take(is_chosen)
