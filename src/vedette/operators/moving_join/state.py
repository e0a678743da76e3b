"""The fields of a saved moving join: the objects of both sets. Their pairs follow from them, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.ids import Ids
from vedette.native.damage import check, check_shape, check_type
from vedette.operators.moving_join.motion_rows import SIDES, TIME, UNTIL
from vedette.operators.moving_join.rows import FARTHEST
from vedette.operators.state import Content, MonitorState, free_rows, is_whole, validate_ids, write_ids
from vedette.operators.state_checks import check_count

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
        if join is None:
            return {"n_dims": None, "now": None, "rates": None, "parts": {}}
        parts = {}
        for name, objects in zip(_SETS, join.sets, strict=True):
            slots, part = write_ids(objects, only_changes=only_changes)
            parts[name] = part | {"rows": objects.rows[slots]}
        rates = [list(each.to_numbers()) for each in join.rates]
        return {"n_dims": join.a.n_dims, "now": join.now, "rates": rates, "parts": parts}

    def validate(self, monitor: MovingJoin, content: Content) -> None:
        n_dims, parts, join = content["n_dims"], content["parts"], monitor.join
        check(n_dims is None or type(n_dims) is int, "the number of dimensions is invalid")
        check(n_dims in (None, 2, 3), "the number of dimensions is invalid")
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
        if content["n_dims"] is None:
            return
        join = monitor.begin_unstarted(content["n_dims"], content["now"])
        for name, objects, rates, numbers in zip(_SETS, join.sets, join.rates, content["rates"], strict=True):
            part = content["parts"][name]
            free_rows(objects, part)
            if len(part["ids"]):
                objects.restore(part["ids"], part["rows"])
            objects.pack()
            objects.begin_log()
            rates.set_numbers(*numbers)


def _validate_rates(n_voluntary: Any, n_forced: Any, waited: Any) -> None:
    check_count(n_voluntary, "a count of a state")
    check_count(n_forced, "a count of a state")
    check_type(waited, float, "a count of a state")
    check(np.isfinite(waited) and waited >= 0.0, "a count of a state is not finite")


def _validate_objects(part: Content, n_dims: int, known: Ids | None) -> None:
    n, rows = validate_ids(part, known), part["rows"]
    check_type(rows, NDArray[np.float64], "the objects of a state")
    check_shape(rows, (n, SIDES + 4 * n_dims), "the objects of a state")
    others = np.delete(rows, UNTIL, axis=1)
    check((np.abs(others) <= FARTHEST).all() and not np.isnan(rows).any(), "an object of a state is out of range")
    lows, highs = rows[:, SIDES::4], rows[:, SIDES + 1 :: 4]
    check((lows <= highs).all() and (rows[:, UNTIL] >= rows[:, TIME]).all(), "an object ends before it begins")
