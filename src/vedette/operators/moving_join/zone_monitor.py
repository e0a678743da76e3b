"""A moving join whose set b is a set of zones: changes of zones take effect at the next step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import INTEGER, take_ids
from vedette.errors import RowError, count
from vedette.operators.moving_join.motion_rows import SIDES
from vedette.operators.moving_join.moving_join import MovingJoin
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import MovingTable
from vedette.operators.moving_join.zones import sides_of

if TYPE_CHECKING:
    from vedette.operators.moving_join.zone_set import ZoneSet


@dataclass(frozen=True)
class ZoneChanges:
    """Zones to put in place, with their sides, and ids of zones to remove."""

    ids: Any  # NDArray[np.int64] or pa.LargeStringArray
    sides: NDArray[np.float64]
    removed: Any

    def to_rows(self, time: float) -> dict[str, Any]:
        """Rows of a static set, as `MovingJoin.update` takes them."""
        ids = self.ids if not len(self.removed) else _concat(self.ids, self.removed)
        n_put, n = len(self.ids), len(self.ids) + len(self.removed)
        sides = np.zeros((n, self.sides.shape[1]))
        sides[:n_put] = self.sides
        removed = np.arange(n) >= n_put
        columns = dict(zip(sides_of(self.sides.shape[1] // 2), sides.T, strict=True))
        return {"id": ids, "time": np.full(n, time), "removed": removed, **columns}


def find_changes(ids: Any, sides: NDArray[np.float64], known: MovingSet | None) -> ZoneChanges:
    """How a set of zones differs from what a join has: `ids` and `sides` are all zones as they are now."""
    if known is None or not len(known):
        return ZoneChanges(ids, sides, ids[:0])
    has_other_ids = known.ids.kind != (INTEGER if isinstance(ids, np.ndarray) else "string")
    if has_other_ids and len(ids):  # the join refuses them with a message of its own
        return ZoneChanges(ids, sides, ids[:0])
    slots = known.find(ids) if len(ids) else np.empty(0, np.int32)
    is_same = slots >= 0
    columns = [SIDES + 4 * (place // 2) + place % 2 for place in range(sides.shape[1])]
    is_same[is_same] = (known.rows[slots[is_same]][:, columns] == sides[is_same]).all(axis=1)
    is_gone = known.lives[: len(known.ids)].copy()
    is_gone[slots[slots >= 0]] = False
    put = np.flatnonzero(~is_same)
    return ZoneChanges(take_ids(ids, put), sides[put], known.ids.take(np.flatnonzero(is_gone)))


class ZoneMonitor:
    """Moving objects, set a, against the zones of a `ZoneSet`, set b."""

    def __init__(self, zones: ZoneSet, max_update_interval: float, *, expire_overdue: bool = False) -> None:
        self.queries = zones
        self.join = MovingJoin(max_update_interval, expire_overdue=expire_overdue, static="b")
        self.version: int | None = None  # of the zones in the join; None: not known

    def __repr__(self) -> str:
        return f"ZoneMonitor({count(self.join.n_a, 'object')}, {count(len(self.queries), 'zone')})"

    @property
    def nbytes(self) -> int:
        """The memory of the objects and of the zones in the join."""
        return self.join.nbytes

    def update(self, objects: Any = None, time: Any = None, *, remove: Any = None) -> pa.Table:
        """Apply changes of zones, then rows of objects: lines of sign, a, b, start and end as `MovingJoin.update` has.

        A zone that was added, replaced or removed since the last call changes at the time of the last call. Raises
        what `MovingJoin.update` raises, and then changes nothing.
        """
        version = self.queries.version
        changes = self.join.update(a=objects, b=self._zone_rows(objects, time), time=time, remove_a=remove)
        self.version = version
        return changes

    def pairs(self, at: Any = None) -> pa.Table:
        """As `MovingJoin.pairs`."""
        return self.join.pairs(at)

    def events(self, until: Any = None) -> pa.Table:
        """As `MovingJoin.events`."""
        return self.join.events(until)

    def explain(self) -> str:
        """As `MovingJoin.explain`."""
        return self.join.explain()

    # State: the objects and the zones that the join has.

    def save(self) -> bytes:
        return self.join.save()

    def load(self, state: bytes) -> None:
        """Continue from a saved state. Zones that have changed since then change at the next update."""
        self.join.load(state)
        self.version = None

    def take_delta(self) -> bytes:
        return self.join.take_delta()

    def apply_delta(self, state: bytes) -> None:
        self.join.apply_delta(state)
        self.version = None

    def _zone_rows(self, objects: Any, time: Any) -> dict[str, Any] | None:
        """The zones that changed, at the time of the join; None if there are none."""
        given = None if objects is None else MovingTable(objects, "a")
        if given is not None and given.has_sides and given.n_dims != self.queries.dimensions:
            have = "no z" if given.n_dims == 2 else "a z"
            raise RowError(f"the objects have {have}, but the zones have {self.queries.dimensions} dimensions")
        if self.version == self.queries.version and self.join.n_a + self.join.n_b:
            return None
        at = self.join.time
        if at is None:
            at = _first_time(given, time)
        if at is None:
            return None  # the join says that a time is missing
        known = None if self.join.join is None else self.join.join.b
        return find_changes(*self.queries.read_active(), known).to_rows(at)


def _first_time(objects: MovingTable | None, time: Any) -> Any:
    """The time of the first row; `time` if rows have none."""
    if objects is None or not objects.has("time"):
        return time
    values, valid = objects.read("time", "double", len(objects.find_ids()))
    known = values if valid is None else values[valid]
    return float(known.min()) if len(known) else time


def _concat(ids: Any, more: Any) -> Any:
    if not len(ids):
        return more
    return np.concatenate([ids, more]) if isinstance(ids, np.ndarray) else pa.concat_arrays([ids, more])
