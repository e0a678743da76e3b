"""A moving join whose set b is a set of zones: changes of zones take effect at the next step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.durations import Interval
from vedette.data.ids import INTEGER, STRING, Ids, take_ids
from vedette.errors import RowError, count
from vedette.operators.moving_join.late_rows import Late
from vedette.operators.moving_join.motion_rows import SIDES
from vedette.operators.moving_join.moving_join import MovingJoin, Tables
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import MovingRows

if TYPE_CHECKING:
    from vedette.operators.moving_join.zone_set import ZoneSet


def find_changes(ids: Any, sides: NDArray[np.float64], known: MovingSet | None) -> MovingRows:
    """How a set of zones differs from what a join has: rows to put and rows to remove, without a time.

    `ids` and `sides` are all zones as they are now.
    """
    columns = [SIDES + 4 * (place // 2) + place % 2 for place in range(sides.shape[1])]
    put, removed = np.arange(len(ids)), ids[:0]
    if known is not None and len(known) and (known.ids.kind == _kind_of(ids) or not len(ids)):
        slots = known.find(ids) if len(ids) else np.empty(0, np.int32)
        is_same = slots >= 0
        is_same[is_same] = (known.rows[slots[is_same]][:, columns] == sides[is_same]).all(axis=1)
        is_removed = known.lives[: len(known.ids)].copy()
        is_removed[slots[slots >= 0]] = False
        put, removed = np.flatnonzero(~is_same), known.ids.take(np.flatnonzero(is_removed))
    rows = np.zeros((len(put) + len(removed), SIDES + 2 * sides.shape[1]))
    rows[: len(put), columns] = sides[put]
    return MovingRows.make(_concat(take_ids(ids, put), removed), rows, np.arange(len(rows)) >= len(put), is_timed=False)


class ZoneJoin(MovingJoin):
    """A moving join that takes set b from a set of zones."""

    def __init__(self, zones: ZoneSet, max_update_interval: Interval, *, expire_overdue: bool, late: Late) -> None:
        self.zones = zones
        self.version: int | None = None  # of the zones in the join; None: not known
        super().__init__(max_update_interval, expire_overdue=expire_overdue, static="b", late=late)

    def _n_dims(self, tables: Tables) -> int:
        objects = tables[0]
        if objects is not None and objects.has_sides and objects.n_dims != self.zones.dimensions:
            have = "no z" if objects.n_dims == 2 else "a z"
            raise RowError(f"the objects have {have}, but the zones have {self.zones.dimensions} dimensions")
        return self.zones.dimensions

    def _read(
        self, tables: Tables, removals: Sequence[Any], known: Sequence[Ids], n_dims: int, time: float | None
    ) -> tuple[MovingRows, MovingRows]:
        a, b = super()._read(tables, removals, known, n_dims, time)
        has_time = self.time is not None or time is not None or len(a)
        if self.version == self.zones.version or not has_time:
            return a, b
        return a, find_changes(*self.zones.read_active(), None if self.join is None else self.join.b)


class ZoneMonitor:
    """Moving objects, set a, against the zones of a `ZoneSet`, set b."""

    def __init__(
        self, zones: ZoneSet, max_update_interval: Interval, *, expire_overdue: bool = False, late: Late = "apply"
    ) -> None:
        self.queries = zones
        self.join = ZoneJoin(zones, max_update_interval, expire_overdue=expire_overdue, late=late)

    def __repr__(self) -> str:
        return f"ZoneMonitor({count(self.join.n_a, 'object')}, {count(len(self.queries), 'zone')})"

    @property
    def nbytes(self) -> int:
        """The memory of the objects and of the zones in the join."""
        return self.join.nbytes

    @property
    def time(self) -> float | None:
        """As `MovingJoin.time`."""
        return self.join.time

    @property
    def n_late(self) -> int:
        """The number of late rows that were dropped."""
        return self.join.n_late

    def update(self, objects: Any = None, time: Any = None, *, remove: Any = None) -> pa.Table:
        """Apply changes of zones, then rows of objects: lines of sign, a, b, start and end as `MovingJoin.update` has.

        A zone that was added, replaced or removed since the last call changes at the time of the last call. Raises
        what `MovingJoin.update` raises, and then changes nothing.
        """
        version = self.queries.version
        changes = self.join.update(a=objects, time=time, remove_a=remove)
        self.join.version = version
        return changes

    def pairs(self, at: Any = None) -> pa.Table:
        """As `MovingJoin.pairs`."""
        return self.join.pairs(at)

    def events(self, until: Any = None) -> pa.Table:
        """As `MovingJoin.events`."""
        return self.join.events(until)

    def overdue(self, at: Any = None) -> pa.Table:
        """As `MovingJoin.overdue`."""
        return self.join.overdue(at)

    def explain(self) -> str:
        """As `MovingJoin.explain`."""
        return self.join.explain()

    # State: the objects and the zones that the join has.

    def save(self) -> bytes:
        return self.join.save()

    def load(self, state: bytes) -> None:
        """Continue from a saved state. Zones that have changed since then change at the next update."""
        self.join.load(state)
        self.join.version = None

    def take_delta(self) -> bytes:
        return self.join.take_delta()

    def apply_delta(self, state: bytes) -> None:
        self.join.apply_delta(state)
        self.join.version = None


def _kind_of(ids: Any) -> str:
    return INTEGER if isinstance(ids, np.ndarray) else STRING


def _concat(ids: Any, more: Any) -> Any:
    if not len(ids) or not len(more):
        return ids if len(ids) else more
    return np.concatenate([ids, more]) if isinstance(ids, np.ndarray) else pa.concat_arrays([ids, more])
