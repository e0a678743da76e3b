"""Files of standing joins: texts with a window each, or bands. CSV, JSON lines or Parquet.

Joins have columns `id` and `where`, and their window in `within` (as in: 10 seconds) or `rows`; `left_within` or
`left_rows` is that of one stream. Bands have `id`, `low` and `high`, where nothing means no end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vedette.data.durations import number_or_duration
from vedette.errors import QueryError
from vedette.files.lines import Kind, read_lines
from vedette.files.queries import take_text
from vedette.operators.band_join.query_set import BandQuerySet
from vedette.operators.window_join.query_set import JoinQuerySet

Window = tuple[str, Any]  # ("within", a length) or ("rows", a number)
_SIZES = ("within", "rows")


@dataclass(frozen=True)
class Windows:
    """The windows of joins that have none of their own, by stream where they are known."""

    streams: Sequence[str]
    known: Mapping[str, Window]

    @classmethod
    def read(cls, streams: Sequence[str], within: Mapping[str, str], rows: Mapping[str, str]) -> Windows:
        """As the options --within and --rows have them, by stream."""
        known: dict[str, Window] = {}
        for stream in streams:
            if stream in within and stream in rows:
                raise QueryError(f"--within and --rows both name the window of the {stream} stream; give one")
            if stream in within:
                known[stream] = ("within", number_or_duration(within[stream]))
            elif stream in rows:
                known[stream] = ("rows", _read_rows(rows[stream], "--rows"))
        return cls(streams, known)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a file that tell windows: those of all streams, then stream by stream."""
        return (*_SIZES, *(f"{stream}_{size}" for stream in self.streams for size in _SIZES))

    def take(self, query_id: str | int, text: object, *cells: Any) -> tuple[str, tuple[Window, ...]]:
        """A join: its text, and by stream its window."""
        read = take_text(query_id, text)
        given = dict(zip(self.columns, map(_read_cell, cells), strict=True))
        both = _one_of(given["within"], given["rows"], "")
        windows = []
        for stream in self.streams:
            own = _one_of(given[f"{stream}_within"], given[f"{stream}_rows"], f"{stream}_")
            window = own or both or self.known.get(stream)
            if window is None:
                raise QueryError(
                    f"query {query_id!r} has no window for the {stream} stream; give it one in a column 'within' or "
                    f"'rows', or all of them with --within or --rows"
                )
            windows.append(window)
        return read, tuple(windows)


def load_joins(path: Path, queries: JoinQuerySet, windows: Windows, *, skip_bad: bool) -> None:
    """Let the joins of a file stand. With `skip_bad` wrong ones are left out, counted on standard error."""
    needs = "an id, a text under 'where' and a window"
    lines = read_lines(path, Kind("query", "queries", ("where",), needs, windows.take, windows.columns))
    kinds: dict[tuple[str, ...], list[int]] = {}
    for place, (_, own) in enumerate(lines.values):
        kinds.setdefault(tuple(size for size, _ in own), []).append(place)

    def add(ids: list[Any], joins: list[Any]) -> None:
        """Joins whose windows are of the same kind, stream by stream."""
        told: dict[str, dict[str, list[Any]]] = {}
        for place, stream in enumerate(queries.streams):
            told.setdefault(joins[0][1][place][0], {})[stream] = [own[place][1] for _, own in joins]
        queries.add_many(ids, [text for text, _ in joins], **told)

    for places in kinds.values() or [[]]:
        lines.take(places).stand(add, skip_bad=skip_bad)
    lines.tell_bad()


def load_bands(path: Path, *, skip_bad: bool) -> BandQuerySet:
    """The bands of a file. With `skip_bad` wrong ones are left out, counted on standard error."""
    bands = BandQuerySet()
    lines = read_lines(path, Kind("band", "bands", ("low", "high"), "an id, a low and a high", _take_band))
    lines.stand(lambda ids, ends: bands.add_many(ids, *zip(*ends, strict=True)) if ids else None, skip_bad=skip_bad)
    lines.tell_bad()
    return bands


def _take_band(band_id: str | int, low: object, high: object) -> tuple[float, float]:
    ends = _read_end(band_id, "low", low, -math.inf), _read_end(band_id, "high", high, math.inf)
    if ends[0] > ends[1]:
        raise QueryError(f"low {ends[0]:g} of band {band_id!r} is above its high {ends[1]:g}; a band is low <= high")
    return ends


def _read_end(band_id: str | int, name: str, value: Any, missing: float) -> float:
    value = _read_cell(value)
    if value is None:
        return missing
    try:
        read = float("nan" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        read = math.nan
    if math.isnan(read):
        raise QueryError(
            f"the {name} of band {band_id!r} is {value!r}; it is a number, or nothing where there is no end"
        )
    return read


def _read_cell(value: Any) -> Any:
    """What stands in a cell, None where nothing does: CSV has no other null."""
    return None if isinstance(value, str) and not value.strip() else value


def _one_of(within: Any, rows: Any, prefix: str) -> Window | None:
    if within is not None and rows is not None:
        raise QueryError(f"it has both {prefix}within, {within!r}, and {prefix}rows, {rows!r}; a window is one of them")
    if within is not None:
        return "within", number_or_duration(within) if isinstance(within, str) else within
    return None if rows is None else ("rows", _read_rows(rows, f"{prefix}rows"))


def _read_rows(value: Any, name: str) -> int:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not number > 0 or number != math.floor(number) or math.isinf(number):
        raise QueryError(f"{name} is a whole number above 0; got {value!r}")
    return int(number)
