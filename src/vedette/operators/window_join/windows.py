"""Reads the windows of join queries: durations, or numbers of rows, by stream."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vedette.data.durations import read_duration
from vedette.errors import QueryError, nearest
from vedette.operators.window_join.plan import Windows

_MAX_ROWS = 1 << 40


def read_windows(within: Any, rows: Any, streams: Sequence[str], n: int, ids: Sequence[Any] | None = None) -> Windows:
    """The windows of `n` queries. `within` and `rows` are one for all, a list with one per query, or a dict by stream.

    With one per query, errors name the query by its id.
    """
    shape = (len(streams), n)
    windows = Windows(np.zeros(shape, np.bool_), np.zeros(shape, np.bool_), np.zeros(shape, np.int64), np.zeros(shape))
    lengths, numbers = _by_stream(within, "within", streams), _by_stream(rows, "rows", streams)
    for place, stream in enumerate(streams):
        length, number = lengths[place], numbers[place]
        if length is None and number is None:
            raise QueryError(
                f"the window of the {stream} stream is missing; give a length of time, within='10 seconds', or a "
                f"number of rows, rows=1000"
            )
        if length is not None and number is not None:
            raise QueryError(f"the {stream} stream has two windows, within={length!r} and rows={number!r}; give one")
        if number is not None:
            windows.counts[place] = True
            given_windows = _each(number, "rows", n)
            windows.units[place] = [_read_one(_read_rows, given_windows, query, ids, number) for query in range(n)]
            windows.numbers[place] = windows.units[place]
        else:
            known: dict[str, tuple[bool, int, float]] = {}
            given_windows = _each(length, "within", n)
            for query, each in enumerate(given_windows):
                read = known.get(each) if isinstance(each, str) else None
                if read is None:
                    read = _read_one(_read_within, given_windows, query, ids, length)
                if isinstance(each, str):
                    known[each] = read
                windows.is_duration[place, query], windows.units[place, query], windows.numbers[place, query] = read
    return windows


def read_each_window(given_windows: Sequence[Mapping[str, Any]], streams: Sequence[str]) -> Windows:
    """The windows of queries from dicts {"within": ..., "rows": ...}."""
    n = len(given_windows)
    each = [
        [_by_stream(window.get(name), name, streams) for name in ("within", "rows")] for window in given_windows
    ]  # by query, by name, by stream
    alike: dict[tuple[bool, ...], list[int]] = {}
    for query, (lengths, numbers) in enumerate(each):
        alike.setdefault(tuple(value is None for value in (*lengths, *numbers)), []).append(query)
    shape = (len(streams), n)
    windows = Windows(np.zeros(shape, np.bool_), np.zeros(shape, np.bool_), np.zeros(shape, np.int64), np.zeros(shape))
    for lacks, queries in alike.items():
        by_name = []
        for name in range(2):
            lacking = lacks[name * len(streams) : (name + 1) * len(streams)]
            given = [place for place in range(len(streams)) if not lacking[place]]
            by_name.append({streams[place]: [each[query][name][place] for query in queries] for place in given})
        read = read_windows(by_name[0], by_name[1], streams, len(queries))
        for column, values in vars(windows).items():
            values[:, queries] = getattr(read, column)
    return windows


def _by_stream(value: Any, name: str, streams: Sequence[str]) -> list[Any]:
    if not isinstance(value, Mapping):
        return [value] * len(streams)
    for stream in value:
        if stream not in streams:
            raise QueryError(
                f"names an unknown stream {stream!r}; the streams are: {', '.join(streams)}"
                f"{nearest(str(stream), streams)}",
                option=name,
            )
    return [value.get(stream) for stream in streams]


def _is_many(value: Any) -> bool:
    is_one = isinstance(value, (str, bytes, set, frozenset, Mapping)) or not hasattr(value, "__len__")
    return not is_one and getattr(value, "ndim", 1) == 1


def _each(value: Any, name: str, n: int) -> Sequence[Any]:
    """The window of each query, from one for all or from a list, an array or a column with one per query."""
    if not _is_many(value):
        return [value] * n
    if len(value) != n:
        raise QueryError(f"has {len(value)} windows for {n} queries; give one for all, or one per query", option=name)
    return value.to_pylist() if hasattr(value, "to_pylist") else list(value)


def _read_one(
    read: Callable[[Any], Any], given_windows: Sequence[Any], query: int, ids: Sequence[Any] | None, given: Any
) -> Any:
    """The window of one query. If windows are given per query, an error names the query."""
    try:
        return read(given_windows[query])
    except QueryError as error:
        raise (error if ids is None or not _is_many(given) else error.in_query(ids[query])) from None


def _read_within(value: Any) -> tuple[bool, int, float]:
    if isinstance(value, np.timedelta64):
        value = value.astype("m8[us]").item()
    if isinstance(value, (str, datetime.timedelta)):
        microseconds = int(read_duration(value, "within", "timestamp"))
        return True, microseconds, float(microseconds)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise QueryError(
            f"must be a duration such as '10 seconds', or a number if the time column is a number; got {value!r}",
            option="within",
        )
    number = read_duration(value.item() if isinstance(value, np.number) else value, "within", "double")
    return False, int(number), float(number)


def _read_rows(value: Any) -> int:
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or not 0 < value <= _MAX_ROWS:
        raise QueryError(f"must be a whole number above 0, and at most 2^40; got {value!r}", option="rows")
    return int(value)
