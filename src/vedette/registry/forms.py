"""The forms of a query: a text, a text with a window, a band, or a zone.

A form defines how a query is written as arguments, in the database, in files and in answers. `vedette.registry.kinds`
says which kind of set has which form.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vedette.errors import QueryError, shown
from vedette.registry.write.documents import write_windows

if TYPE_CHECKING:
    from vedette.registry.read.query_info import QueryInfo
    from vedette.registry.read.set_info import SetInfo

SIDES = ("x_low", "x_high", "y_low", "y_high", "z_low", "z_high")  # columns of zones
Columns = dict[str, list[Any]]


@dataclass(frozen=True)
class Form:
    """One form. Subclasses read and write it."""

    words: tuple[str, str]  # the noun for one query, and for many
    arguments: tuple[str, ...]  # of `add` and `replace`
    plurals: Mapping[str, str]  # arguments of `add_many` that have another name there
    stored: tuple[str, ...]  # columns of the table of revisions
    written: tuple[str, ...]  # columns of files, besides the id
    needed: tuple[str, ...]  # columns that a file must have
    needs: str  # what a line of a file must contain, for messages
    nullable: tuple[str, ...] = ()  # arguments for which None is a value

    def read(self, given: Mapping[str, Any], info: SetInfo, ids: Sequence[Any], *, is_new: bool) -> Columns:
        """The columns to store, one value per query; empty if an existing query keeps its values."""
        raise NotImplementedError

    def to_changes(self, columns: Sequence[list[Any]]) -> dict[str, Any]:
        """Stored columns as arguments of `Changes`."""
        raise NotImplementedError

    def to_record(self, query: QueryInfo) -> dict[str, Any]:
        """A query as a dict with the column names of files, with plain values."""
        raise NotImplementedError

    def to_line(self, query: QueryInfo) -> dict[str, Any]:
        """The same, with strings and numbers only, so that any file format can store them."""
        return self.to_record(query)

    def take(self, *cells: Any) -> dict[str, Any]:
        """The arguments of `add` from the cells of a line, in the order of `written`. Raises QueryError."""
        raise NotImplementedError


class TextForm(Form):
    """A predicate in Spark SQL."""

    def read(self, given: Mapping[str, Any], info: SetInfo, ids: Sequence[Any], *, is_new: bool) -> Columns:
        from vedette.queries.query_texts import as_texts

        if "text" not in given:
            if is_new:
                raise QueryError(f"set {info.name!r} is of kind {info.kind}: a query needs a text")
            return {}
        texts = list(as_texts(given["text"]))
        if len(texts) != len(ids):
            raise QueryError(f"got {len(ids)} ids but {len(texts)} texts; each query needs both")
        return {"text": texts}

    def to_changes(self, columns: Sequence[list[Any]]) -> dict[str, Any]:
        return {"texts": columns[0]}

    def to_record(self, query: QueryInfo) -> dict[str, Any]:
        return {"where": query.text}

    def take(self, *cells: Any) -> dict[str, Any]:
        return {"text": take_text(cells[0])}


class WindowedTextForm(TextForm):
    """A predicate over several streams, and a window of time or rows."""

    def read(self, given: Mapping[str, Any], info: SetInfo, ids: Sequence[Any], *, is_new: bool) -> Columns:
        from vedette.operators.window_join.windows import read_windows

        for name, others in (("within", "rows"), ("rows", "time")):
            if name in given and info.windows == others:
                kind = f"{info.kind} over windows of {info.windows}"
                raise QueryError(f"set {info.name!r} is of kind {kind}; its queries have no {name!r}")
        columns = super().read(given, info, ids, is_new=is_new)
        within, rows = given.get("within"), given.get("rows")
        if is_new or within is not None or rows is not None:
            read_windows(within, rows, info.streams, len(ids), ids)
            columns["windows"] = list(write_windows(within, rows, info.streams, len(ids)))
        return columns

    def to_changes(self, columns: Sequence[list[Any]]) -> dict[str, Any]:
        known: dict[str, Any] = {}
        windows = [known.get(each) or known.setdefault(each, json.loads(each)) for each in columns[1]]
        return {"texts": columns[0], "windows": windows}

    def to_record(self, query: QueryInfo) -> dict[str, Any]:
        window = query.window or {}
        return {"where": query.text, "within": window.get("within"), "rows": window.get("rows")}

    def to_line(self, query: QueryInfo) -> dict[str, Any]:
        return {name: _as_cell(value) for name, value in self.to_record(query).items()}

    def take(self, *cells: Any) -> dict[str, Any]:
        text, within, rows = cells
        taken = {"text": take_text(text)}
        sizes = {"within": _take_size("within", within), "rows": _take_size("rows", rows)}
        return taken | {name: size for name, size in sizes.items() if size is not None}


class BandForm(Form):
    """A low and a high end; either may be None, which means unbounded."""

    def read(self, given: Mapping[str, Any], info: SetInfo, ids: Sequence[Any], *, is_new: bool) -> Columns:
        from vedette.operators.band_join.ends import read_ends

        if not given and not is_new:
            return {}
        if len(given) < 2:
            raise QueryError(f"set {info.name!r} is of kind {info.kind}: a query needs low and high; one may be None")
        lows, highs = read_ends(given["low"], given["high"], len(ids), _named(ids))
        return {"low": lows.tolist(), "high": highs.tolist()}

    def to_changes(self, columns: Sequence[list[Any]]) -> dict[str, Any]:
        return {"lows": np.array(columns[0], np.float64), "highs": np.array(columns[1], np.float64)}

    def to_record(self, query: QueryInfo) -> dict[str, Any]:
        ends = {"low": query.low, "high": query.high}
        return {name: None if end is None or math.isinf(end) else end for name, end in ends.items()}

    def to_line(self, query: QueryInfo) -> dict[str, Any]:
        return {
            "low": None if query.low == -math.inf else query.low,
            "high": None if query.high == math.inf else query.high,
        }

    def take(self, *cells: Any) -> dict[str, Any]:
        missing = {"low": -math.inf, "high": math.inf}
        return {
            name: missing[name] if _is_empty(cell) else _take_number(name, cell)
            for name, cell in zip(self.written, cells, strict=True)
        }


class ZoneForm(Form):
    """The sides of a rectangle, or of a box in sets of three dimensions."""

    def read(self, given: Mapping[str, Any], info: SetInfo, ids: Sequence[Any], *, is_new: bool) -> Columns:
        from vedette.operators.moving_join.zones import read_zones, sides_of

        if not given and not is_new:
            return {}
        dimensions = info.dimensions or 2
        zones = read_zones(given, dimensions, len(ids), _named(ids))
        return dict(zip(sides_of(dimensions), zones.T.tolist(), strict=True))

    def to_changes(self, columns: Sequence[list[Any]]) -> dict[str, Any]:
        sides = {
            name: values for name, values in zip(SIDES, columns, strict=True) if not values or values[0] is not None
        }
        return {"sides": {name: np.array(values, np.float64) for name, values in sides.items()}}

    def to_record(self, query: QueryInfo) -> dict[str, Any]:
        return {name: (query.sides or {}).get(name) for name in SIDES}

    def take(self, *cells: Any) -> dict[str, Any]:
        return {
            name: _take_number(name, cell)
            for name, cell in zip(self.written, cells, strict=True)
            if not _is_empty(cell)
        }


_QUERY, _TEXT = ("query", "queries"), "an id and a text under 'where'"
TEXT = TextForm(_QUERY, ("text",), {}, ("text",), ("where",), ("where",), _TEXT)
WINDOWED_TEXT = WindowedTextForm(
    _QUERY, ("text", "within", "rows"), {}, ("text", "windows"), ("where", "within", "rows"), ("where",), _TEXT
)
_ENDS, _PLURALS = ("low", "high"), {"lows": "low", "highs": "high"}
BAND = BandForm(("band", "bands"), _ENDS, _PLURALS, _ENDS, _ENDS, _ENDS, "an id, a low and a high", nullable=_ENDS)
ZONE = ZoneForm(("zone", "zones"), SIDES, {}, SIDES, SIDES, SIDES[:4], f"an id and {', '.join(SIDES[:4])}")
FORMS = (TEXT, WINDOWED_TEXT, BAND, ZONE)
ARGUMENTS = tuple(dict.fromkeys(name for form in FORMS for name in form.arguments))
STORED = tuple(dict.fromkeys(name for form in FORMS for name in form.stored))
PLURALS = {plural: name for form in FORMS for plural, name in form.plurals.items()}


def take_text(text: Any) -> str:
    """The text of a query from a cell of a file."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError("it has no text under 'where'")
    return text


def _named(ids: Sequence[Any]) -> Any:
    """Ids in the type that `vedette.data.ids.item` reads."""
    return np.array(ids) if len(ids) and isinstance(ids[0], int) else ids


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _take_number(name: str, cell: Any) -> float:
    try:
        if not isinstance(cell, bool):
            return float(cell)
    except (TypeError, ValueError, OverflowError):
        pass
    raise QueryError(f"its {name} is {shown(cell)}; it must be a number", field=name)


def _take_size(name: str, value: Any) -> Any:
    """The length of a window: one value for all streams, or a JSON object with one value per stream."""
    from vedette.data.durations import number_or_duration

    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise QueryError(f"its {name} begins with a brace, but is not a JSON object", field=name) from None
    if isinstance(value, str):
        return number_or_duration(value) if value.strip() else None
    return value


def _as_cell(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)
