"""Counts of a backtest, in the two tables that a history is reduced to.

MATCHES has a line per day and query; in lines without a query, `rows` counts the rows of the day, and `matches` those
that match any query. EVENTS has a line per day, query and key. Side 0 is the set, or the set before a change; side 1
is the set after it. Lines of any cut of the history may be added up, so batches and Spark's tasks do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes
from vedette.data.frames import as_frame
from vedette.data.keyed_rows import read_times
from vedette.errors import QueryError
from vedette.native.budget import OverBudgetError, bounded

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet

MATCH_KEYS, EVENT_KEYS = ("day", "query"), ("day", "query", "key")
MATCH_COUNTS = ("rows", "matches_0", "matches_1", "only_0", "only_1")  # only_0: rows that match on side 0 alone
EVENT_COUNTS = ("events_0", "events_1", "notifications_0", "notifications_1")
_DAY_MICROSECONDS = 86_400_000_000
_MANY_LINES = 1 << 20


def days_of(times: NDArray[np.int64], time_zone: str) -> NDArray[np.int32]:
    """The days since 1970 of microseconds, in a time zone."""
    if time_zone == "UTC":
        return (times // _DAY_MICROSECONDS).astype(np.int32)
    local = pc.local_timestamp(pa.array(times, pa.timestamp("us", time_zone)))
    return np.asarray(local.cast(pa.date32(), safe=False).view(pa.int32()).to_numpy())


def read_moments(rows: Any, queries: QuerySet, time: str) -> NDArray[np.int64]:
    """The time of each row in microseconds. Raises QueryError unless times are timestamps."""
    field = queries.schema.find(time)
    if field is not None:
        check_time(time, field.type.name)
    times, time_type = read_times(as_frame(rows), queries.schema, queries.time_zone, time)
    check_time(time, time_type or "timestamp")
    return times


def check_time(name: str, type_: str) -> None:
    """Raise QueryError unless the column of times has timestamps."""
    if type_ != "timestamp":
        raise QueryError(
            f"is {name!r}, which is {type_}; a backtest counts by day, so it needs a timestamp", option="time"
        )


def count_matches(sets: Sequence[QuerySet], rows: pa.Table, time: str) -> pa.Table:
    """The lines of MATCHES for some rows. What `now()` means is each row's own time."""
    moments = read_moments(rows, sets[0], time)
    days = days_of(moments, sets[0].time_zone)
    lines: list[pa.Table] = []
    _count_rows(sets, rows, moments, days, lines)
    return add_up(lines, MATCH_KEYS, MATCH_COUNTS)


def _count_rows(
    sets: Sequence[QuerySet], rows: pa.Table, moments: NDArray[np.int64], days: NDArray[np.int32], lines: list[pa.Table]
) -> None:
    """Append lines. Rows whose matches exceed the limit on answers are halved."""
    try:
        with bounded(max_answer_bytes()):
            found = [queries.find_matches(rows, moments) for queries in sets]
    except OverBudgetError:
        half = len(moments) // 2
        if not half:
            raise
        for some in (slice(None, half), slice(half, None)):
            part = rows.slice(some.start or 0, half if some.start is None else None)
            _count_rows(sets, part, moments[some], days[some], lines)
        return
    codes, ids = _unify([matches.positions for matches in found], [queries.ids for queries in sets])
    pairs = [matches.rows.astype(np.int64) * (len(ids) + 1) + each for matches, each in zip(found, codes, strict=True)]
    lines.append(_line(days, None, ids, rows=np.ones(len(days), np.int64)))
    for side, matches in enumerate(found):
        name = f"matches_{side}"
        is_matched = np.diff(matches.starts) > 0
        lines.append(_line(days[is_matched], None, ids, **{name: np.ones(np.count_nonzero(is_matched), np.int64)}))
        alone = np.zeros(len(pairs[side]), np.int64)
        if len(found) > 1:
            alone = (~np.isin(pairs[side], pairs[1 - side])).astype(np.int64)
        counted = {name: np.ones(len(alone), np.int64), f"only_{side}": alone}
        lines.append(_line(days[matches.rows], codes[side], ids, **counted))


def _unify(positions: Sequence[NDArray[np.int32]], ids: Sequence[pa.Array]) -> tuple[list[NDArray[np.int64]], pa.Array]:
    """The ids that occur on any side, and the place of each pair's id among them."""
    used = [np.unique(each) for each in positions]
    named = [
        all_ids.take(pa.array(each)).cast(plain_type(all_ids.type)) for all_ids, each in zip(ids, used, strict=True)
    ]
    known = pc.unique(pa.concat_arrays(named))
    places = [pc.index_in(each, known).to_numpy(zero_copy_only=False).astype(np.int64) for each in named]
    return [
        where[np.searchsorted(some, each)] for where, some, each in zip(places, used, positions, strict=True)
    ], known


def _line(
    days: NDArray[np.int32], codes: NDArray[np.int64] | None, ids: pa.Array, **counts: NDArray[np.int64]
) -> pa.Table:
    """The sums of the counts by day and query; without codes, by day alone."""
    first, n_ids = int(days.min(initial=0)), len(ids) + 1
    groups = (days.astype(np.int64) - first) * n_ids + (0 if codes is None else codes)
    distinct, members = np.unique(groups, return_inverse=True)
    columns: dict[str, Any] = {
        "day": pa.array((distinct // n_ids + first).astype(np.int32)).view(pa.date32()),
        "query": pa.nulls(len(distinct), ids.type) if codes is None else ids.take(pa.array(distinct % n_ids)),
    }
    for name in MATCH_COUNTS:
        summed = np.bincount(members, counts[name], len(distinct)) if name in counts else np.zeros(len(distinct))
        columns[name] = pa.array(summed.astype(np.int64))
    return pa.table(columns)


def plain_type(id_type: pa.DataType) -> pa.DataType:
    """The type of ids in tables."""
    return pa.int64() if pa.types.is_integer(id_type) else pa.large_string()


def count_events(events: pa.Table, side: int, time_zone: str) -> pa.Table:
    """The lines of EVENTS for a table of events of a border monitor."""
    n = events.num_rows
    times = events["time"].combine_chunks().cast(pa.timestamp("us", "UTC")).view(pa.int64()).to_numpy()
    is_enter = pc.equal(events["event"].cast(pa.string()), "enter").to_numpy().astype(np.int64)
    columns: dict[str, Any] = {
        "day": pa.array(days_of(times, time_zone), pa.int32()).view(pa.date32()),
        "query": _plain(events["query"]),
        "key": _plain(events["key"]),
        **dict.fromkeys(EVENT_COUNTS, pa.array(np.zeros(n, np.int64))),
        f"events_{side}": pa.array(np.ones(n, np.int64)),
        f"notifications_{side}": pa.array(is_enter),
    }
    return pa.table(columns)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return column.cast(plain_type(type_))


def add_up(lines: Sequence[pa.Table], keys: Sequence[str], counts: Sequence[str]) -> pa.Table:
    """One line per key: the sums of the counts. Whole columns are encoded, which is faster than Arrow's `group_by`."""
    joined = pa.concat_tables(lines).combine_chunks()
    groups, n_groups = np.zeros(joined.num_rows, np.int64), 1
    for name in keys:
        column = joined[name].combine_chunks().dictionary_encode(null_encoding="encode")
        if n_groups * (len(column.dictionary) + 1) >= 1 << 62:
            distinct, groups = np.unique(groups, return_inverse=True)
            n_groups = len(distinct)
        groups = groups * len(column.dictionary) + column.indices.to_numpy()
        n_groups *= len(column.dictionary)
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    columns = {name: joined[name].take(pa.array(firsts)) for name in keys}
    for name in counts:
        columns[name] = pa.array(np.bincount(members, joined[name].to_numpy(), len(firsts)).astype(np.int64))
    return pa.table(columns)


@dataclass
class Tally:
    """Lines that are added up when they become many."""

    keys: Sequence[str]
    counts: Sequence[str]
    lines: list[pa.Table] = field(default_factory=list)
    _most: int = _MANY_LINES

    def add(self, lines: pa.Table) -> None:
        self.lines.append(lines)
        if sum(each.num_rows for each in self.lines) > self._most:
            self.lines = [add_up(self.lines, self.keys, self.counts)]
            self._most = 2 * self.lines[0].num_rows + _MANY_LINES

    def total(self) -> pa.Table | None:
        return add_up(self.lines, self.keys, self.counts) if self.lines else None
