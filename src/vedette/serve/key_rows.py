"""The last row of each key of a monitor, and what has changed since a client was told. On the thread of the set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import Column, null_column, to_array
from vedette.data.ids import INTEGER, Ids
from vedette.data.schema import Type
from vedette.errors import RowError, VedetteError
from vedette.operators.border.monitor import BorderMonitor


@dataclass(frozen=True)
class Area:
    """A range of two fields: west, south, east, north, as a map has them."""

    x: str
    y: str
    bounds: tuple[float, float, float, float]


def list_keys(monitor: BorderMonitor, search: str | None, after: int, limit: int) -> dict[str, Any]:
    """A page of keys with their last rows, in the order in which they appeared. `after`: a place in that order."""
    keys = monitor.keys
    slots = np.flatnonzero(keys.has_row[: len(keys)]).astype(np.int32)
    page, following = choose_page(keys.keys, slots, search, after, limit)
    names = list(keys.columns)
    columns = read_fields(monitor, page, [*names, monitor.options.time])
    times, own = columns[monitor.options.time], keys.keys.at(page)
    rows = [dict(zip(names, values, strict=True)) for values in zip(*(columns[name] for name in names), strict=True)]
    records = zip(own, times, rows or [{}] * len(own), strict=True)
    return {
        "keys": [{"key": key, "time": time, "row": row} for key, time, row in records],
        "next": following,
        "total": monitor.n_keys,
    }


def choose_page(
    ids: Ids, slots: NDArray[np.int32], search: str | None, after: int, limit: int
) -> tuple[NDArray[np.int32], int | None]:
    """The slots of a page, of those that ascend in `slots`, and the cursor of the next page: None after the last."""
    slots = slots[np.searchsorted(slots, after, side="right") :]
    if search and len(slots):
        texts = ids.to_arrow().take(pa.array(slots)).cast(pa.large_string())
        slots = slots[pc.match_substring(texts, search, ignore_case=True).to_numpy(zero_copy_only=False)]
    page = slots[:limit]
    return page, int(page[-1]) if len(slots) > limit else None


def read_fields(monitor: BorderMonitor, slots: NDArray[np.int32], names: Sequence[str]) -> dict[str, list[Any]]:
    """Fields of the last rows. The state has those that queries use, and the time; others are null."""
    found = {}
    schema = monitor.queries.schema
    for name in names:
        known = schema.find(name)
        if known is None:
            raise RowError(schema.unknown_field(name), field=name)
        kept = monitor.keys.columns.get(known.name)
        if known.name == monitor.options.time and monitor.time_type:
            column, type_ = Column(monitor.keys.times[slots], None), Type(monitor.time_type)
        elif kept is not None:
            column, type_ = kept.at(slots), kept.type
        else:
            column, type_ = null_column(known.type, len(slots)), known.type
        found[name] = to_array(column, type_).to_pylist()
    return found


@dataclass
class KeyChanges:
    """The keys whose rows changed since the last look of one client: those of an area, or one key."""

    fields: list[str]
    area: Area | None = None
    key: str | None = None
    most: int = 5000
    _times: NDArray[Any] = field(default_factory=lambda: np.zeros(0))  # by slot, when last looked
    _is_shown: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))  # by slot
    _n_batches: int = -1

    def look(self, monitor: BorderMonitor, n_batches: int) -> dict[str, Any] | None:
        """The changed keys and their fields; None if there was no batch since the last look."""
        if n_batches == self._n_batches:
            return None
        is_first = self._n_batches < 0
        self._n_batches = n_batches
        keys = monitor.keys
        n = len(keys)
        starts_again = is_first or n < len(self._times)  # slots have moved
        if starts_again:
            self._times, self._is_shown = np.zeros(0, keys.times.dtype), np.zeros(0, np.bool_)
        before = len(self._times)
        is_changed = np.ones(n, np.bool_)
        is_changed[:before] = keys.times[:before] != self._times
        was_shown = np.zeros(n, np.bool_)
        was_shown[:before] = self._is_shown
        has_row = keys.has_row[:n]
        is_inside = has_row & self._find_inside(monitor, n)
        gone = np.flatnonzero(was_shown & ~is_inside).astype(np.int32)
        is_shown = _first(is_inside, self.most)
        chosen = np.flatnonzero(is_shown & (is_changed | ~was_shown)).astype(np.int32)
        self._times, self._is_shown = keys.times[:n].copy(), is_shown
        return {
            "keys": keys.keys.at(chosen),
            "fields": read_fields(monitor, chosen, self.fields),
            "gone": keys.keys.at(gone) if len(gone) else [],
            "again": starts_again,
            "shown": int(np.count_nonzero(is_shown)),
            "inside": int(np.count_nonzero(is_inside)),
            "total": monitor.n_keys,
        }

    def _find_inside(self, monitor: BorderMonitor, n: int) -> NDArray[np.bool_]:
        """By slot: whether it is wanted."""
        if self.key is not None:
            is_it = np.zeros(n, np.bool_)
            slot = _find_slot(monitor, self.key)
            is_it[slot : slot + 1] = slot >= 0
            return is_it
        if self.area is None:
            return np.ones(n, np.bool_)
        west, south, east, north = self.area.bounds
        x, y = (_numbers(monitor, name, n) for name in (self.area.x, self.area.y))
        return (x >= west) & (x <= east) & (y >= south) & (y <= north)


def _find_slot(monitor: BorderMonitor, key: str) -> int:
    """The slot of a key, which may be the text of an integer; -1 if there is none."""
    ids = monitor.keys.keys
    try:
        wanted = int(key) if ids.kind == INTEGER else key
        return int(ids.find(ids.read([wanted]))[0]) if len(ids) else -1
    except (ValueError, VedetteError):
        return -1


def _numbers(monitor: BorderMonitor, name: str, n: int) -> NDArray[np.float64]:
    """A field by slot as doubles; NaN where it is null or not a number."""
    known = monitor.queries.schema.find(name)
    if known is None:
        raise RowError(monitor.queries.schema.unknown_field(name), field=name)
    column = monitor.keys.columns.get(known.name)
    if column is None or column.is_text or column.values.dtype == object:
        return np.full(n, np.nan)
    return np.where(column.valid[:n], column.values[:n].astype(np.float64), np.nan)


def _first(chosen: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """The first `most` of what is chosen."""
    return chosen if np.count_nonzero(chosen) <= most else chosen & (np.cumsum(chosen) <= most)
