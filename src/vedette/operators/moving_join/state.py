"""The fields of a saved moving join: the objects of both sets. Their pairs follow from them, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.ids import Ids
from vedette.native.damage import check, check_shape, check_type
from vedette.operators.carried_state import read_carried, validate_carried, write_carried
from vedette.operators.moving_join.motion_rows import FARTHEST, SIDES, TIME, UNTIL
from vedette.operators.moving_join.rows import MovingRows
from vedette.operators.state import Content, MonitorState, free_rows, is_whole, validate_ids, write_ids
from vedette.operators.state_checks import check_count, check_distinct_ids, check_ids

if TYPE_CHECKING:
    from vedette.operators.moving_join.moving_join import MovingJoin

_SETS = ("a", "b")


class MovingState(MonitorState["MovingJoin"]):
    kind = "moving join state"

    def options(self, monitor: MovingJoin) -> Content:
        return {
            "max_update_interval": monitor.max_update_interval,
            "expire_overdue": monitor.expire_overdue,
            "static": monitor.static,
        }

    def write(self, monitor: MovingJoin, *, only_changes: bool) -> Content:
        join = monitor.join
        late = {"n_late": monitor.n_late, "waiting": _write_waiting(monitor.waiting)}
        if join is None:
            return {"n_dims": None, "now": None, "rates": None, "parts": {}} | late
        parts = {}
        for name, objects in zip(_SETS, join.sets, strict=True):
            slots, part = write_ids(objects, only_changes=only_changes)
            removed = objects.removed(join.now)
            if part["freed"] is not None:
                removed = np.intersect1d(removed, objects.ids.find(part["freed"]))
            parts[name] = part | {
                "rows": objects.rows[slots],
                "reported": objects.reported[slots],
                "removed": objects.ids.take(removed),
                "removed_reported": objects.reported[removed],
                **write_carried(objects.carried.at(slots) if objects.carried else None),
            }
        rates = [list(each.to_numbers()) for each in join.rates]
        return {"n_dims": join.a.n_dims, "now": join.now, "rates": rates, "parts": parts} | late

    def validate(self, monitor: MovingJoin, content: Content) -> None:
        n_dims, parts, join = content["n_dims"], content["parts"], monitor.join
        check(n_dims is None or type(n_dims) is int, "the number of dimensions is invalid")
        check(n_dims in (None, 2, 3), "the number of dimensions is invalid")
        check_count(content["n_late"], "a count of a state")
        _validate_waiting(content["waiting"])
        if n_dims is None:
            check(parts == {}, "objects have no dimensions")
            return
        check_type(content["now"], float, "the time of a state")
        check(abs(content["now"]) <= FARTHEST, "the time of a state is out of range")
        check(parts.keys() == {*_SETS} and len(content["rates"]) == 2, "the sets of a state are incomplete")
        check(is_whole(content) or join is None or join.a.n_dims == n_dims, "a delta has another number of dimensions")
        for number, name in enumerate(_SETS):
            _validate_rates(*content["rates"][number])
            known = None if is_whole(content) or join is None else join.sets[number].ids
            _validate_objects(parts[name], n_dims, known)

    def apply(self, monitor: MovingJoin, content: Content) -> None:
        monitor.n_late, monitor.waiting = content["n_late"], _read_waiting(content["waiting"], monitor)
        if content["n_dims"] is None:
            return
        join = monitor.begin_unstarted(content["n_dims"], content["now"])
        for name, objects, rates, numbers in zip(_SETS, join.sets, join.rates, content["rates"], strict=True):
            part = content["parts"][name]
            free_rows(objects, part)
            if len(part["removed"]):
                objects.remove(part["removed"], part["removed_reported"])
            if len(part["ids"]):
                n, names = len(part["ids"]), objects.carried.names
                carried = read_carried(part, names, n) if names else None
                objects.restore(part["ids"], part["rows"], part["reported"], join.now, carried)
            objects.pack(join.now)
            objects.log.begin()
            rates.set_numbers(*numbers)


def _validate_rates(n_voluntary: Any, n_forced: Any, waited: Any) -> None:
    check_count(n_voluntary, "a count of a state")
    check_count(n_forced, "a count of a state")
    check_type(waited, float, "a count of a state")
    check(np.isfinite(waited) and waited >= 0.0, "a count of a state is not finite")


def _validate_objects(part: Content, n_dims: int, known: Ids | None) -> None:
    n, rows = validate_ids(part, known), part["rows"]
    _validate_rows(rows, n, n_dims)
    validate_carried(part, n)
    check((rows[:, UNTIL] >= rows[:, TIME]).all(), "an object ends before it begins")
    n_removed = check_distinct_ids(part["removed"], known, "the removed ids of a state")
    for name, n_times in (("reported", n), ("removed_reported", n_removed)):
        check_type(part[name], NDArray[np.float64], "the times of a state")
        check_shape(part[name], (n_times,), "the times of a state")
        check((np.abs(part[name]) <= FARTHEST).all(), "a time of a state is out of range")


def _validate_rows(rows: Any, n: int, n_dims: int) -> None:
    check_type(rows, NDArray[np.float64], "the objects of a state")
    check_shape(rows, (n, SIDES + 4 * n_dims), "the objects of a state")
    others = np.delete(rows, UNTIL, axis=1)
    check((np.abs(others) <= FARTHEST).all() and not np.isnan(rows).any(), "an object of a state is out of range")
    check(
        (rows[:, SIDES::4] <= rows[:, SIDES + 1 :: 4]).all(), "an object of a state has a low side above its high side"
    )


# Rows of a static set that wait for the first time.


def _write_waiting(rows: MovingRows | None) -> Content | None:
    if rows is None:
        return None
    return {"ids": rows.ids, "rows": rows.rows, "removed": rows.removed} | write_carried(rows.carried)


def _validate_waiting(saved: Any) -> None:
    if saved is None:
        return
    check_type(saved["removed"], NDArray[np.bool_], "the waiting objects of a state")
    n = len(saved["removed"])
    check_ids(saved["ids"], n, "the ids of a state")
    check_type(saved["rows"], NDArray[np.float64], "the waiting objects of a state")
    check(saved["rows"].shape[1:] in ((SIDES + 8,), (SIDES + 12,)), "the number of dimensions is invalid")
    _validate_rows(saved["rows"], n, (saved["rows"].shape[1] - SIDES) // 4)
    validate_carried(saved, n)


def _read_waiting(saved: Content | None, monitor: MovingJoin) -> MovingRows | None:
    if saved is None:
        return None
    names = () if monitor.static is None else monitor.columns.of[monitor.static]
    carried = read_carried(saved, names, len(saved["removed"])) if names else None
    return MovingRows.make(saved["ids"], saved["rows"], saved["removed"], is_timed=False, carried=carried)
