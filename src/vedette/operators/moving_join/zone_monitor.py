"""A moving join whose set b is a set of zones: changes of zones take effect at the next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.durations import Interval
from vedette.data.ids import INTEGER, STRING, Ids, take_ids
from vedette.errors import RowError, count
from vedette.operators.carried_rows import concat_carried
from vedette.operators.moving_join.columns import nulls
from vedette.operators.moving_join.late_rows import Late
from vedette.operators.moving_join.motion_rows import SIDES
from vedette.operators.moving_join.moving_join import MovingJoin, Tables
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import MovingRows
from vedette.operators.moving_join.zone_set import ZoneChanges, ZoneSet
from vedette.operators.query_metadata import to_columns

Filter = Callable[[Any], NDArray[np.bool_]]  # which ids of zones belong to a shard


def read_changes(
    zones: ZoneSet,
    version: int | None,
    known: MovingSet | None,
    is_own: Filter | None = None,
    metadata: Sequence[str] = (),
) -> MovingRows:
    """How zones changed since a version that a join has: rows to put and rows to remove, without a time.

    If the version is None, or its changes are not known any more, all zones are compared with those of the join. Fields
    of their `metadata` are the columns of the rows.
    """
    changes = None if version is None else zones.changes_since(version)
    if changes is not None:
        changes = _own(changes, is_own)
        return _to_rows(changes, _read_metadata(zones, changes, metadata))
    changes = _own(zones.read_active(), is_own)
    carried = _read_metadata(zones, changes, metadata)
    put, removed = _compare(changes, carried, known)
    changes = ZoneChanges(take_ids(changes.ids, put), changes.sides[put], removed, changes.positions[put])
    return _to_rows(changes, None if carried is None else carried.take(pa.array(put)))


def _own(changes: ZoneChanges, is_own: Filter | None) -> ZoneChanges:
    """The changes of zones that belong to a shard."""
    if is_own is None:
        return changes
    put = np.flatnonzero(is_own(changes.ids)) if len(changes.ids) else _NONE
    removed = np.flatnonzero(is_own(changes.removed)) if len(changes.removed) else _NONE
    return ZoneChanges(
        take_ids(changes.ids, put), changes.sides[put], take_ids(changes.removed, removed), changes.positions[put]
    )


def _read_metadata(zones: ZoneSet, changes: ZoneChanges, names: Sequence[str]) -> pa.Table | None:
    if not names:
        return None
    columns = to_columns(names, zones.metadata_at(changes.positions))
    return pa.table({name: column.cast(pa.large_string()) for name, column in columns.items()})


def _compare(zones: ZoneChanges, carried: pa.Table | None, known: MovingSet | None) -> tuple[NDArray[np.int64], Any]:
    """Which zones differ from those of a join, and the ids that only the join has."""
    ids, sides = zones.ids, zones.sides
    if known is None or not len(known) or (known.ids.kind != _kind_of(ids) and len(ids)):
        return np.arange(len(ids)), ids[:0]
    slots = known.find(ids) if len(ids) else np.empty(0, np.int32)
    is_same = slots >= 0
    is_same[is_same] = (known.rows[slots[is_same]][:, _columns_of(sides)] == sides[is_same]).all(axis=1)
    if carried is not None:
        is_same[is_same] = _are_equal(carried.filter(pa.array(is_same)), known.carried.at(slots[is_same]))
    is_removed = known.lives[: len(known.ids)].copy()
    is_removed[slots[slots >= 0]] = False
    return np.flatnonzero(~is_same), known.ids.take(np.flatnonzero(is_removed))


def _are_equal(table: pa.Table, other: pa.Table) -> NDArray[np.bool_]:
    """Which rows of texts are equal; nulls are."""
    equal = np.ones(table.num_rows, np.bool_)
    for texts, others in zip(table.columns, other.columns, strict=True):
        others = others.cast(texts.type)
        both_null = pc.and_(texts.is_null(), others.is_null())
        same = pc.or_(both_null, pc.fill_null(pc.equal(texts, others), False))
        equal &= same.to_numpy()
    return equal


def _to_rows(changes: ZoneChanges, carried: pa.Table | None) -> MovingRows:
    n_put, n_removed = len(changes.ids), len(changes.removed)
    rows = np.zeros((n_put + n_removed, SIDES + 2 * changes.sides.shape[1]))
    rows[:n_put, _columns_of(changes.sides)] = changes.sides
    ids = _concat(changes.ids, changes.removed)
    if carried is not None:
        carried = concat_carried([carried, nulls(carried.column_names, n_removed)], [n_put, n_removed])
    return MovingRows.make(ids, rows, np.arange(len(rows)) >= n_put, is_timed=False, carried=carried)


def _columns_of(sides: NDArray[np.float64]) -> list[int]:
    """The columns of low and high sides in rows of motions."""
    return [SIDES + 4 * (place // 2) + place % 2 for place in range(sides.shape[1])]


class ZoneJoin(MovingJoin):
    """A moving join that takes set b from a set of zones."""

    zones_in = "b"

    def __init__(self, zones: ZoneSet, max_update_interval: Interval, **options: Any) -> None:
        self.zones = zones
        self.version: int | None = None  # of the zones in the join; None: not known
        super().__init__(max_update_interval, static="b", **options)

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
        known_zones = None if self.join is None else self.join.b
        return a, read_changes(self.zones, self.version, known_zones, metadata=self.columns.of["b"])


class ZoneMonitor:
    """Moving objects, set a, against the zones of a `ZoneSet`, set b."""

    def __init__(
        self,
        zones: ZoneSet,
        max_update_interval: Interval,
        *,
        expire_overdue: bool = False,
        late: Late = "apply",
        columns: Any = None,
        metadata: Any = None,
    ) -> None:
        self.queries = zones
        options = {"expire_overdue": expire_overdue, "late": late, "columns": columns, "metadata": metadata}
        self.join = ZoneJoin(zones, max_update_interval, **options)

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


_NONE = np.empty(0, np.int64)
