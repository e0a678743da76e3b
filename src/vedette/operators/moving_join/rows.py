"""Reading moving objects: rows with an id, the sides of a rectangle or box, and the speeds of the sides."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.arrow_values import to_arrow
from vedette.data.columns import string_buffers
from vedette.data.frames import as_frame, check_array
from vedette.data.ids import Ids, item, take_ids
from vedette.data.rows import find_ids, read_values
from vedette.data.schema import Field, Type
from vedette.errors import QueryError, RowError, nearest, shown
from vedette.native.hashing import empty_slots, find_numbers, find_strings, insert_numbers, insert_strings
from vedette.operators.carried_rows import concat_carried
from vedette.operators.moving_join.motion_rows import FARTHEST, SIDES, TIME

AXES = "xyz"
ENDS = ("", "_low", "_high")
COLUMNS = frozenset(("id", "time", "removed", *(f"{v}{axis}{end}" for v in ("", "v") for axis in AXES for end in ENDS)))


@dataclass(frozen=True)
class MovingRows:
    """Rows of one set, in the order in which they arrived."""

    ids: Any  # NDArray[np.int64] or pa.LargeStringArray
    twins: NDArray[np.int32] | None  # equal for rows of one id; None: all ids are distinct
    rows: NDArray[np.float64]  # see motion_rows.py; of a removed object only the time is used
    removed: NDArray[np.bool_]
    reported: NDArray[np.float64]  # the time that each row reports; a late row is applied at a later time
    is_timed: bool = True  # False: the rows have no time yet
    carried: pa.Table | None = None  # columns that answers carry

    @classmethod
    def empty(cls, n_dims: int) -> MovingRows:
        rows = np.empty((0, SIDES + 4 * n_dims))
        return cls(np.empty(0, np.int64), None, rows, np.empty(0, np.bool_), rows[:, TIME])

    @classmethod
    def make(
        cls,
        ids: Any,
        rows: NDArray[np.float64],
        removed: NDArray[np.bool_],
        is_timed: bool = True,
        carried: pa.Table | None = None,
    ) -> MovingRows:
        """Rows that were checked before."""
        return cls(ids, _find_twins(ids), rows, removed, rows[:, TIME].copy(), is_timed, carried)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_dims(self) -> int:
        return (self.rows.shape[1] - SIDES) // 4  # type: ignore[no-any-return]

    @property
    def times(self) -> NDArray[np.float64]:
        """When each row is applied."""
        return self.rows[:, TIME]

    def with_time(self, time: float) -> MovingRows:
        """The same rows at one time. Removals without their own time are not remembered."""
        rows = self.rows.copy()
        rows[:, TIME] = time
        return replace(self, rows=rows, reported=np.where(self.removed, -np.inf, time), is_timed=True)

    def followed_by(self, others: MovingRows) -> MovingRows:
        """These rows and then others; all have times, or none has."""
        ids = _concat([self.ids, others.ids])
        rows, removed = np.concatenate([self.rows, others.rows]), np.concatenate([self.removed, others.removed])
        return MovingRows.make(ids, rows, removed, self.is_timed, _concat_carried([self, others]))

    def take(self, places: NDArray[np.int64]) -> MovingRows:
        twins = None if self.twins is None else self.twins[places]
        return MovingRows(
            take_ids(self.ids, places),
            twins,
            self.rows[places],
            self.removed[places],
            self.reported[places],
            carried=None if self.carried is None else self.carried.take(pa.array(places)),
        )

    def at_each(self, moments: NDArray[np.float64]) -> Iterator[MovingRows]:
        """The rows of each moment, in order; of several rows of one object, the last. Every row is of some moment."""
        if len(moments) == 1:
            yield self if self.twins is None else self._last_of(np.arange(len(self)))
            return
        order = np.argsort(self.times, kind="stable")
        cuts = [*np.searchsorted(self.times[order], moments), len(self)]
        for first, last in pairwise(cuts):
            yield self._last_of(order[first:last])

    def latest(self) -> MovingRows:
        """The last row of each object, by time; objects that are removed then are left out."""
        latest = self._last_of(np.argsort(self.times, kind="stable"))
        return latest._last_of(np.flatnonzero(~latest.removed))

    def _last_of(self, places: NDArray[np.int64]) -> MovingRows:
        """Some rows; of each object the last."""
        if self.twins is not None:
            _, last = np.unique(self.twins[places][::-1], return_index=True)
            places = np.sort(places[len(places) - 1 - last])
        elif len(places) == len(self):
            return self
        return replace(self.take(places), twins=None)


def read_moving_rows(
    table: MovingTable | None, removals: Any, known: Ids, name: str, *, n_dims: int, time: float | None, is_static: bool
) -> MovingRows:
    """The rows of set `name`, followed by the removals of objects by id; raises RowError if a row is invalid.

    `time` is that of rows without a time column, and of removals. Rows of a static set need neither times nor speeds.
    """
    if table is None and removals is None:
        return MovingRows.empty(n_dims)
    ids, read, removed = [], [], []
    if table is not None:
        ids.append(_read_ids(table.find_ids(), known, name))
        removed.append(_read_removed(table, len(ids[-1])))
        read.append(_read_rows(table, ids[-1], removed[-1], n_dims, time, is_static))
    is_timed = time is not None or (table is not None and table.has("time"))
    if removals is not None:
        if time is None and (is_timed or not is_static):
            raise RowError(f"objects of set {name} are to be removed, but the time is missing; pass time=")
        ids.append(_read_ids(find_ids(removals, f"the objects of set {name} to remove"), known, name))
        removed.append(np.ones(len(ids[-1]), np.bool_))
        read.append(np.full((len(ids[-1]), SIDES + 4 * n_dims), 0.0 if time is None else time))
    if len(ids) == 1:
        return MovingRows.make(ids[0], read[0], removed[0], is_timed)
    return MovingRows.make(_concat(ids), np.concatenate(read), np.concatenate(removed), is_timed)


def read_number(value: Any, what: str) -> float:
    """A finite number that is not too large."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if is_number and -FARTHEST <= value <= FARTHEST:
        return float(value)
    if isinstance(value, (datetime.date, np.datetime64)):
        raise RowError(f"{what} must be a number, such as seconds since 1970; got {shown(value)}")
    is_far = is_number and -np.inf < value < np.inf
    wanted = f"number from {-FARTHEST:g} to {FARTHEST:g}" if is_far else "finite number"
    raise RowError(f"{what} must be a {wanted}; got {shown(value)}")


class MovingTable:
    """Rows of one set as the caller has them. Column names are not case-sensitive."""

    def __init__(self, rows: Any, name: str) -> None:
        self.name = name
        self.frame = as_frame(rows)
        self._names = self.frame.lower_names

    @property
    def n_dims(self) -> int:
        """3 if the rows have a z, otherwise 2."""
        return 3 if any(self.has(name) for name in ("z", "z_low", "z_high")) else 2

    def has(self, column: str) -> bool:
        return column in self._names

    @property
    def has_sides(self) -> bool:
        return any(self.has(f"{axis}{end}") for axis in AXES for end in ENDS)

    def has_speeds(self, n_dims: int) -> bool:
        return any(self.has(f"v{axis}{end}") for axis in AXES[:n_dims] for end in ENDS)

    def find(self, column: str, instead: str = "") -> Any:
        if not self.has(column):
            known = sorted(each.lower() for each in self.frame.names)
            have = f"{', '.join(known) or 'none'}{nearest(column, set(known) - COLUMNS)}"
            if column.startswith("v") and not self.has_speeds(self.n_dims):
                have += f"; only a static set, static={self.name!r}, needs no speeds"
            or_else = f" (or {instead!r})" if instead else ""
            raise RowError(f"the rows of set {self.name} lack column {column!r}{or_else}; they have: {have}")
        try:
            return self.frame.find(column)
        except RowError as error:
            raise error.within(f"set {self.name}") from None

    def find_ids(self) -> Any:
        ids = self.find("id")
        _check_array(ids, "id", self.name)
        return ids

    def pair(self, what: str) -> tuple[str, str]:
        """The columns of a low and a high side, which may be the same."""
        sides = f"{what}_low", f"{what}_high"
        if self.has(what):
            given = [each for each in sides if self.has(each)]
            if given:
                raise RowError(
                    f"the rows of set {self.name} have {what!r}, which means both sides, and {given[0]!r}; pass "
                    f"{what!r}, or {sides[0]!r} and {sides[1]!r}"
                )
            return what, what
        if not (self.has(sides[0]) and self.has(sides[1])):
            self.find(sides[0], what)
            self.find(sides[1])
        return sides

    def find_sides(self, n_dims: int, is_static: bool) -> dict[int, str]:
        """The columns of sides and speeds by their places in rows of motions; raises RowError if one is missing.

        A static set may have no columns of speeds.
        """
        columns: dict[int, str] = {}
        has_no_speeds = is_static and not self.has_speeds(n_dims)
        for d, axis in enumerate(AXES[:n_dims]):
            at = SIDES + 4 * d
            columns[at], columns[at + 1] = self.pair(axis)
            if not has_no_speeds:
                columns[at + 2], columns[at + 3] = self.pair(f"v{axis}")
        return columns

    def find_used(self, n_dims: int, is_static: bool, has_removed: bool) -> list[str]:
        """The columns of sides and speeds that a join will read, before any row is known.

        Rows with removals and without any side can only remove objects, so they need none. When rows are read, those
        that do not remove an object are refused then.
        """
        if has_removed and not self.has_sides:
            return []
        return list(dict.fromkeys(self.find_sides(n_dims, is_static).values()))

    def read(self, column: str, kind: str, n: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        found = self.find(column)
        if kind == "double" and type(found) is np.ndarray and found.dtype == np.float64 and found.shape == (n,):
            return found, None  # the common case
        _check_array(found, column, self.name)
        try:
            values = read_values(found, Field(column, Type(kind)), "UTC")
        except RowError:
            wanted = _WANTED.get(column, "sides and speeds are numbers: double, float or integers")
            raise RowError(f"column {column!r} of set {self.name} holds {_describe(found)}; {wanted}") from None
        if len(values) != n:
            raise RowError(f"the rows of set {self.name} have {n} ids but {len(values)} values of {column!r}")
        return values.values, values.valid


_WANTED = {
    "time": "times are numbers, such as seconds since 1970: double, float or integers",
    "removed": "it is true for a removed object, otherwise false or null",
}


def _check_array(values: Any, column: str, name: str) -> None:
    try:
        check_array(values, column)
    except RowError as error:
        raise error.within(f"set {name}") from None


def _describe(values: Any) -> str:
    """What an unreadable column holds."""
    if getattr(values, "ndim", 1) != 1:
        return f"an array of {values.ndim} dimensions"
    try:
        return str(to_arrow(values, "").type)
    except RowError:
        return str(values.dtype) if hasattr(values, "dtype") else "values of several types"


def _read_rows(
    table: MovingTable, ids: Any, removed: NDArray[np.bool_], n_dims: int, time: float | None, is_static: bool
) -> NDArray[np.float64]:
    """The rows as numbers. If all rows remove objects, only the times are read."""
    rows = np.zeros((len(ids), SIDES + 4 * n_dims))
    columns: dict[int, str] = {}
    if table.has("time"):
        columns[TIME] = "time"
    elif time is not None:
        rows[:, TIME] = time
    elif not is_static:
        raise RowError(f"the rows of set {table.name} lack column 'time'; add one, or pass time= for all of them")
    all_removed = bool(len(removed)) and bool(removed.all())
    if not all_removed:
        columns |= table.find_sides(n_dims, is_static)
    nulls = {}
    for at, column in columns.items():
        values, valid = table.read(column, "double", len(ids))
        if valid is not None:
            values, nulls[at] = np.where(valid, values, np.nan), ~valid
        rows[:, at] = values
    _check_numbers(rows, columns, nulls, table.name, ids, removed)
    for d in range(0 if all_removed else n_dims):
        low, high = SIDES + 4 * d, SIDES + 4 * d + 1
        is_wrong = (rows[:, low] > rows[:, high]) & ~removed
        if is_wrong.any():
            i = int(np.argmax(is_wrong))
            raise RowError(
                f"{_row(table.name, ids, i)} has {columns[low]} {rows[i, low]:g} above {columns[high]} "
                f"{rows[i, high]:g}; a low side must not be above its high side"
            )
    return rows


def _check_numbers(
    rows: NDArray[np.float64],
    columns: dict[int, str],
    nulls: dict[int, NDArray[np.bool_]],
    name: str,
    ids: Any,
    removed: NDArray[np.bool_],
) -> None:
    if not len(rows) or np.abs(rows).max() <= FARTHEST:
        return
    is_wrong = ~(np.abs(rows) <= FARTHEST)
    is_wrong[:, SIDES:] &= ~removed[:, None]
    if is_wrong.any():
        i, at = (int(each[0]) for each in np.nonzero(is_wrong))
        got = "null" if at in nulls and nulls[at][i] else f"{rows[i, at]:g}"
        limit = f"numbers from {-FARTHEST:g} to {FARTHEST:g}" if np.isfinite(rows[i, at]) else "finite numbers"
        raise RowError(f"{_row(name, ids, i)} has {columns[at]} {got}; times, sides and speeds are {limit}")
    rows[removed, SIDES:] = 0.0


def _row(name: str, ids: Any, row: int) -> str:
    return f"row {row} of set {name}, id {shown(item(ids, row))},"


def _read_removed(table: MovingTable, n: int) -> NDArray[np.bool_]:
    """Which rows remove their object; null means false."""
    if not table.has("removed"):
        return np.zeros(n, np.bool_)
    values, valid = table.read("removed", "boolean", n)
    return values.copy() if valid is None else values & valid


def _read_ids(ids: Any, known: Ids, name: str) -> Any:
    """Ids of the set's kind. An id may occur several times."""
    try:
        return known.read_repeated(ids)
    except QueryError as error:
        raise RowError(f"the ids of set {name}: {error.reason}") from None


def _find_twins(ids: Any) -> NDArray[np.int32] | None:
    if len(ids) < 2:
        return None
    slots = empty_slots(len(ids))
    if isinstance(ids, np.ndarray):
        return None if insert_numbers(ids, 0, len(ids), slots) < 0 else find_numbers(ids, ids, slots)
    offsets, data = string_buffers(ids)
    if insert_strings(offsets, data, 0, len(ids), slots) < 0:
        return None
    return find_strings(offsets, data, offsets, data, slots)


def _concat_carried(many: Sequence[MovingRows]) -> pa.Table | None:
    known = [rows.carried for rows in many]
    if all(each is None for each in known):
        return None
    lengths = [len(rows) for rows in many]
    blank = [pa.table({"": pa.nulls(n)}).select([]) for n in lengths]
    tables = [none if each is None else each for each, none in zip(known, blank, strict=True)]
    return concat_carried(tables, lengths)


def _concat(ids: list[Any]) -> Any:
    some = [each for each in ids if len(each)] or ids[:1]
    if len({isinstance(each, np.ndarray) for each in some}) > 1:
        raise RowError("ids must be all strings or all 64-bit integers; the rows and the removals differ")
    return np.concatenate(some) if isinstance(some[0], np.ndarray) else pa.concat_arrays(some)
