"""The objects of a moving join, and the pairs that they are in or will be in. On the thread of the set.

Only the objects of a page are looked up, so the cost does not depend on how many the join has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.operators.moving_join.join import IntersectionJoin
from vedette.operators.moving_join.meetings import MEETING_BYTES
from vedette.operators.moving_join.motion_rows import SIDES, TIME, UNTIL
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import AXES
from vedette.operators.moving_join.zone_monitor import ZoneMonitor
from vedette.serve.key_rows import choose_page

_FOUND = 1_000_000  # pairs that a page may have
_LISTED = 5_000  # of these, the first ones


def list_objects(monitor: ZoneMonitor, search: str | None, after: int, limit: int) -> dict[str, Any]:
    """A page of objects, in the order in which they appeared, their pairs by start, and the zones of these pairs."""
    join = monitor.join.join
    found: dict[str, Any] = {"time": monitor.time, "interval": monitor.join.max_update_interval}
    if join is None:
        return {**found, "objects": [], "pairs": [], "zones": [], "more_pairs": 0, "next": None, "total": 0}
    page, following = choose_page(join.a.ids, join.a.living, search, after, limit)
    pairs, zones, n_more = _list_pairs(monitor, join, page)
    return {
        **found,
        "objects": _list_motions(join.a, page),
        "pairs": pairs,
        "zones": [{"id": each["id"], **_sides_of(each)} for each in _list_motions(join.b, zones)],
        "more_pairs": n_more,
        "next": following,
        "total": len(join.a),
    }


def _list_pairs(
    monitor: ZoneMonitor, join: IntersectionJoin, page: NDArray[np.int32]
) -> tuple[list[dict[str, Any]], NDArray[np.int32], int]:
    """The first pairs of some objects, the slots of their zones, and how many pairs there are more."""
    found, ends_so = monitor.join.pairs_of(page, _FOUND * MEETING_BYTES)
    order = np.lexsort((found.b, found.a, found.starts))[:_LISTED]
    first = found.take(order)
    ids = join.a.ids.at(first.a), join.b.ids.at(first.b)
    columns = (*ids, first.starts.tolist(), first.ends.tolist(), ends_so[order].tolist())
    names = ("a", "b", "start", "end", "ends")
    pairs = [dict(zip(names, each, strict=True)) for each in zip(*columns, strict=True)]
    return pairs, np.unique(first.b), len(found) - len(first)


def _list_motions(of: MovingSet, slots: NDArray[np.int32]) -> list[dict[str, Any]]:
    """Objects with their last motion: sides and speeds at its time, and until when it is used; null: for ever."""
    rows = of.rows[slots]
    names = [f"{v}{axis}_{end}" for axis in AXES[: of.n_dims] for v in ("", "v") for end in ("low", "high")]
    columns = [column.tolist() for column in rows[:, SIDES:].T]
    until = [None if end == np.inf else end for end in rows[:, UNTIL].tolist()]
    records = zip(of.ids.at(slots), rows[:, TIME].tolist(), until, *columns, strict=True)
    return [dict(zip(("id", "time", "until", *names), record, strict=True)) for record in records]


def _sides_of(motion: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in motion.items() if name[0] in AXES}
