"""The fields of a saved border monitor: the last row of each key, and the pairs that margin and dwell keep open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.ids import INTEGER, STRING
from vedette.data.keyed_rows import TIME_TYPES
from vedette.data.list_texts import load_column, save_column
from vedette.errors import QueryError, SnapshotError
from vedette.native.damage import check, check_shape, check_type, check_within
from vedette.operators.border.deadlines import no_deadlines
from vedette.operators.border.event_details import BatchDetails
from vedette.operators.border.events import REASONS
from vedette.operators.border.pair_table import KeyQueryPairs, PairTable
from vedette.operators.border.stored_state import with_ordinals
from vedette.operators.carried_state import read_carried, validate_carried, write_carried
from vedette.operators.state import Content, History, MonitorState, is_whole
from vedette.operators.state_checks import (
    check_clock,
    check_count,
    check_distinct_ids,
    check_ids,
    check_time_type,
    check_times,
    read_column,
)

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor

_PAIRS = ("lingering", "pending", "cooling")  # tables of pairs, by the name of the monitor's attribute


class BorderState(MonitorState["BorderMonitor"]):
    kind = "border state"

    def options(self, monitor: BorderMonitor) -> Content:
        return {"schema": str(monitor.queries.schema), "key": monitor.options.key, "time": monitor.options.time}

    def history(self, monitor: BorderMonitor) -> tuple[History, int]:
        return monitor.queries, monitor.queries.version

    def write(self, monitor: BorderMonitor, *, only_changes: bool) -> Content:
        keys = monitor.keys
        changed, freed = monitor.changes.take()
        if changed is None or not only_changes:
            changed, freed, only_changes = np.arange(len(keys), dtype=np.int32), [], False
        slots = changed[keys.has_row[changed]]
        is_chosen = np.zeros(len(keys), np.bool_)
        is_chosen[slots] = True
        part = {
            "is_whole": not only_changes,
            "keys": keys.keys.take(slots),
            "freed": freed,
            "times": keys.times[slots],
            "versions": keys.versions[slots],
            "deadlines": monitor.deadlines.save(slots),
            "silent": None if monitor.silent is None else list(monitor.silent.read(slots)),
            "rows": {name: save_column(column) for name, column in keys.rows(slots).items()},
            **{name: _write_pairs(getattr(monitor, name), is_chosen, slots) for name in _PAIRS},
            **_write_details(monitor, slots),
        }
        return {
            "delays": _delays(monitor),
            "time_type": monitor.time_type,
            "clock": monitor.clock,
            "reached": monitor.deadlines.reached,
            "counts": [monitor.n_late, monitor.n_null_keys, monitor.n_failed],
            "parts": {"keys": part},
        }

    def validate(self, monitor: BorderMonitor, content: Content) -> None:
        check_type(content["delays"], dict[str, bool], "the options of a state")
        check(content["delays"].keys() == _delays(monitor).keys(), "the options of a state are incomplete")
        check_type(content["time_type"], str, "the type of times")
        check_clock(content["clock"], content["time_type"])
        check_clock(content.get("reached"), content["time_type"])
        check(len(content["counts"]) == 3, "the counts of a state are incomplete")
        for counted in content["counts"]:
            check_count(counted, "a count of a state")
        check(content["parts"].keys() == {"keys"}, "the keys of a state are missing")
        part = content["parts"]["keys"]
        known = None if is_whole(content) else monitor.keys.keys
        n = check_distinct_ids(part["keys"], known, "the keys of a state")
        for freed in part["freed"]:
            check_distinct_ids(freed, known, "the freed keys of a state")
        check_times(part["times"], content["time_type"], n)
        check_type(part["versions"], NDArray[np.int32], "the versions of keys")
        check_shape(part["versions"], (n,), "the versions of keys")
        check_within(part["versions"], 0, content["history"][0], "the versions of keys")
        check(len(part.get("deadlines") or no_deadlines(0)) == 3, "the deadlines of keys are incomplete")
        for moments in part.get("deadlines") or ():
            check_type(moments, NDArray[np.int64], "the deadlines of keys")
            check_shape(moments, (n,), "the deadlines of keys")
        _validate_silent(part.get("silent"), n, content["time_type"])
        for name, (values, valid) in part["rows"].items():
            field = monitor.queries.schema.find(name)
            check(field is not None and field.name == name, "a state has an unknown field")
            assert field is not None
            read_column(values, valid, field.type, n)
        for name in _PAIRS:
            if name in part:  # states of earlier versions have no cooldowns
                _validate_pairs(monitor, part[name], n, content["time_type"])
        validate_carried(part, n)
        if part.get("ordinals") is not None:
            check_type(part["ordinals"], NDArray[np.int64], "the ordinals of keys")
            check_shape(part["ordinals"], (n,), "the ordinals of keys")

    def check_fits(self, monitor: BorderMonitor, content: Content) -> None:
        version, forgotten = content["history"][0], monitor.queries.forgotten_version
        if version < forgotten:
            raise SnapshotError(
                f"the state was saved at version {version} of the queries, and version {forgotten} removed or replaced "
                f"queries that are no longer known; call retain() on the set before you change it"
            )
        for name, was_on in content["delays"].items():
            if was_on and not _delays(monitor)[name]:
                raise SnapshotError(f"the state was saved with {name}, but the monitor has no {name}; set it")
        time_type = content["time_type"]
        check_time_type(time_type, monitor.time_type)
        try:
            if time_type:
                monitor.options.check_durations(time_type)
        except QueryError as error:
            raise SnapshotError(f"the state was saved with times of type {time_type}, for which {error}") from None

    def apply(self, monitor: BorderMonitor, content: Content) -> None:
        if content["time_type"]:
            monitor.set_time_type(content["time_type"])
        monitor.clock = content["clock"]
        monitor.deadlines.reached = content.get("reached")  # states from before now() have neither this nor deadlines
        monitor.n_late, monitor.n_null_keys, monitor.n_failed = content["counts"]
        keys, part = monitor.keys, content["parts"]["keys"]
        for freed in part["freed"]:
            slots = keys.keys.find(freed)
            slots = slots[slots >= 0]
            _drop_pairs(monitor, slots)
            keys.free(slots)
        if len(part["keys"]):
            _put_keys(monitor, part)
        if is_whole(content):
            monitor.changes.take()  # from now on, changes are recorded
        monitor.pack()


def _validate_silent(silent: Any, n: int, time_type: str) -> None:
    check(silent is None or len(silent) == 3, "the silences of keys are incomplete")
    for each in silent or ():
        check_type(each, NDArray[Any], "the silences of keys")
        check_shape(each, (n,), "the silences of keys")
        check(n == 0 or each.dtype == TIME_TYPES[time_type], "the silences of keys have the wrong type")
        check((each >= -1).all(), "a silence of a key is negative")


def _write_pairs(table: PairTable, is_chosen: NDArray[np.bool_], slots: NDArray[np.int32]) -> list[Any]:
    """Pairs of the chosen keys; the position of a key among the saved ones replaces its slot."""
    pairs = table.at(is_chosen)
    positions = np.searchsorted(slots, pairs.slots).astype(np.int32)
    return [positions, pairs.ids, pairs.times, pairs.reasons, pairs.ordinals]


def _write_details(monitor: BorderMonitor, slots: NDArray[np.int32]) -> Content:
    """The columns that events have, and the ordinals, of last rows; nothing that the monitor does not need."""
    details, at = monitor.details, monitor.details.at(slots)
    carried = write_carried(at.table if details.carried else None)
    return carried | ({"ordinals": at.ordinals} if details.has_ids else {})


def _validate_pairs(monitor: BorderMonitor, pairs: Any, n_keys: int, time_type: str) -> None:
    positions, ids, times, reasons, ordinals = with_ordinals(pairs)
    check_type(positions, NDArray[np.int32], "the keys of pairs")
    n = len(positions)
    check_shape(positions, (n,), "the keys of pairs")
    check_within(positions, 0, n_keys - 1, "the keys of pairs")
    check_ids(ids, n, "the queries of pairs")
    kinds = (None, INTEGER if isinstance(ids, np.ndarray) else STRING)
    check(n == 0 or monitor.queries.view().ids.kind in kinds, "the queries of pairs have ids of the wrong type")
    check_times(times, time_type, n)
    check_type(reasons, NDArray[np.int8], "the reasons of pairs")
    check_shape(reasons, (n,), "the reasons of pairs")
    check_within(reasons, 0, len(REASONS) - 1, "the reasons of pairs")
    check_type(ordinals, NDArray[np.int64], "the ordinals of pairs")
    check_shape(ordinals, (n,), "the ordinals of pairs")


def _delays(monitor: BorderMonitor) -> dict[str, bool]:
    """Options that delay events. A monitor without them would never report the delayed events of a state."""
    options = monitor.options
    return {"dwell": options.dwell is not None, "margin": bool(options.margins(monitor.queries.schema))}


def _put_keys(monitor: BorderMonitor, part: Content) -> None:
    keys = monitor.keys
    slots = keys.find_slots(part["keys"])
    _drop_pairs(monitor, slots)
    keys.use_fields([each for each in monitor.queries.schema if each.name in part["rows"] or each.name in keys.columns])
    types = {each.name: each.type for each in monitor.queries.schema}
    rows = {name: load_column(values, valid, types[name]) for name, (values, valid) in part["rows"].items()}
    keys.put_some(slots, part["times"], part["versions"], rows)
    monitor.deadlines.load(slots, part.get("deadlines"))
    monitor.load_silent(slots, part.get("silent"))
    for name in _PAIRS:
        if name in part:
            positions, *columns = with_ordinals(part[name])
            getattr(monitor, name).put(KeyQueryPairs(slots[positions], *columns))
    _put_details(monitor, slots, part)


def _put_details(monitor: BorderMonitor, slots: NDArray[np.int32], part: Content) -> None:
    """Columns that the state does not have are null, and ordinals 0."""
    if not monitor.details:
        return
    carried = read_carried(part, monitor.options.carried, len(slots))
    ordinals = part.get("ordinals", np.zeros(len(slots), np.int64))
    monitor.details.put(slots, BatchDetails(carried, ordinals, ordinals))


def _drop_pairs(monitor: BorderMonitor, slots: NDArray[np.int32]) -> None:
    is_chosen = np.zeros(len(monitor.keys), np.bool_)
    is_chosen[slots] = True
    for name in _PAIRS:
        getattr(monitor, name).take(is_chosen)
