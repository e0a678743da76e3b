"""Files of joins: texts with a window each, or bands. CSV, JSON lines or Parquet.

Joins have columns `id` and `where`, and their window in `within` (such as: 10 seconds) or `rows`; `left_within` or
`left_rows` is the window of one stream. Bands have `id`, `low` and `high`; an empty end means unbounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vedette.data.durations import number_or_duration
from vedette.errors import QueryError, shown
from vedette.files.lines import Kind, read_lines
from vedette.files.queries import take_text
from vedette.operators.band_join.query_set import BandQuerySet
from vedette.operators.window_join.query_set import JoinQuerySet

Window = tuple[str, Any]  # ("within", a length) or ("rows", a number)
_SIZES = ("within", "rows")


@dataclass(frozen=True)
class Windows:
    """The default windows of joins, by stream."""

    streams: Sequence[str]
    known: Mapping[str, Window]

    @classmethod
    def read(cls, streams: Sequence[str], within: Mapping[str, str], rows: Mapping[str, str]) -> Windows:
        """The windows from the options --within and --rows, by stream."""
        known: dict[str, Window] = {}
        for stream in streams:
            if stream in within and stream in rows:
                raise QueryError(f"--within and --rows both give the window of the {stream} stream; give one of them")
            if stream in within:
                known[stream] = ("within", number_or_duration(within[stream]))
            elif stream in rows:
                known[stream] = ("rows", _read_rows(rows[stream], "--rows"))
        return cls(streams, known)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a file with windows: those for all streams, then stream by stream."""
        return (*_SIZES, *(f"{stream}_{size}" for stream in self.streams for size in _SIZES))

    def take(self, text: object, *cells: Any) -> tuple[str, tuple[Window, ...]]:
        """A join: its text, and its window for each stream."""
        read = take_text(text)
        given = dict(zip(self.columns, map(_read_cell, cells), strict=True))
        both = _one_of(given["within"], given["rows"], "")
        windows = []
        for stream in self.streams:
            own = _one_of(given[f"{stream}_within"], given[f"{stream}_rows"], f"{stream}_")
            window = own or both or self.known.get(stream)
            if window is None:
                raise QueryError(
                    f"it has no window for the {stream} stream; add a column 'within' or 'rows', or give --within or "
                    f"--rows for all queries"
                )
            windows.append(window)
        return read, tuple(windows)


def load_joins(path: Path, queries: JoinQuerySet, windows: Windows, *, skip_bad: bool) -> list[str]:
    """Add the joins of a file. Returns notes for a summary. With `skip_bad`, invalid joins are skipped and reported."""
    needs = "an id, a text under 'where' and a window"
    lines = read_lines(path, Kind("query", "queries", ("where",), needs, windows.take, windows.columns)).keep_first()
    kinds: dict[tuple[str, ...], list[int]] = {}
    for place, (_, own) in enumerate(lines.values):
        kinds.setdefault(tuple(size for size, _ in own), []).append(place)

    def add(ids: list[Any], joins: list[Any]) -> None:
        """Add joins whose windows are of the same kind for each stream."""
        sizes: dict[str, dict[str, list[Any]]] = {}  # by kind and stream
        for place, stream in enumerate(queries.streams):
            sizes.setdefault(joins[0][1][place][0], {})[stream] = [own[place][1] for _, own in joins]
        queries.add_many(ids, [text for text, _ in joins], **sizes)

    for places in kinds.values() or [[]]:
        lines.take(places).add_to(add, skip_bad=skip_bad)
    lines.report()
    return lines.notes


def load_bands(path: Path, *, skip_bad: bool) -> tuple[BandQuerySet, list[str]]:
    """The bands of a file, and notes for a summary. With `skip_bad`, invalid bands are skipped and reported."""
    bands = BandQuerySet()
    lines = read_lines(path, Kind("band", "bands", ("low", "high"), "an id, a low and a high", _take_band)).keep_first()
    lines.add_to(lambda ids, ends: bands.add_many(ids, *zip(*ends, strict=True)) if ids else None, skip_bad=skip_bad)
    lines.report()
    return bands, lines.notes


def _take_band(low: object, high: object) -> tuple[float, float]:
    ends = _read_end("low", low, -math.inf), _read_end("high", high, math.inf)
    if ends[0] > ends[1]:
        raise QueryError(f"its low {ends[0]:g} is above its high {ends[1]:g}; a band needs low <= high")
    return ends


def _read_end(name: str, value: Any, missing: float) -> float:
    value = _read_cell(value)
    if value is None:
        return missing
    try:
        read = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        read = math.nan
    if math.isnan(read):
        raise QueryError(
            f"its {name} is {shown(value)}; it must be a number, or empty for an unbounded band", field=name
        )
    return read


def _read_cell(value: Any) -> Any:
    """The value of a cell, None if it is empty: CSV has no other null."""
    return None if isinstance(value, str) and not value.strip() else value


def _one_of(within: Any, rows: Any, prefix: str) -> Window | None:
    if within is not None and rows is not None:
        raise QueryError(f"it has both {prefix}within, {within!r}, and {prefix}rows, {rows!r}; give one of them")
    if within is not None:
        return "within", number_or_duration(within) if isinstance(within, str) else within
    return None if rows is None else ("rows", _read_rows(rows, f"{prefix}rows"))


def _read_rows(value: Any, name: str) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not number > 0 or number != math.floor(number) or math.isinf(number):
        raise QueryError(f"{name} must be a whole number above 0; got {shown(value)}")
    return int(number)
