"""The result of a backtest: tables by day and by query, in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vedette.backtesting.counts import EVENT_COUNTS, EVENT_KEYS, MATCH_COUNTS, MATCH_KEYS, add_up
from vedette.errors import count

MEASURES = ("matches", "events", "keys", "notifications")
_SIDES = ("before", "after")


@dataclass(frozen=True)
class KeyCounts:
    """Distinct keys with notifications: by day and query, by query, by day, and of all. Columns are of both sides."""

    by_day_and_query: pa.Table  # day, query, keys_0, keys_1
    by_query: pa.Table  # query, keys_0, keys_1, only_0, only_1
    by_day: pa.Table  # day, keys_0, keys_1
    total: tuple[int, int]


@dataclass(frozen=True)
class Backtest:
    """What queries would have done over a history, or what a change of them would have changed.

    `by_day`: day, rows, matched_rows, and the measures. `by_query`: query and the measures. `by_day_and_query`: day,
    query and the measures, where one is not 0. The measures are `matches`, `events`, `keys` (distinct ones with a
    notification) and `notifications`. Of a change, each measure has two columns, `_before` and `_after`; `by_query`
    also has `change` ("added", "removed" or "kept"), and the rows and keys that only one side has.
    """

    by_day: pa.Table
    by_query: pa.Table
    by_day_and_query: pa.Table
    totals: dict[str, int] = field(default_factory=dict)
    is_change: bool = False
    counts: dict[str, int] = field(default_factory=dict)  # of rows that were dropped: late, without a key

    def __str__(self) -> str:
        rows = count(self.totals["rows"], "row")
        if not self.is_change:
            words = ", ".join(f"{self.totals[name]:,} {name}" for name in MEASURES)
            return f"{rows}, {count(self.by_day.num_rows, 'day')}: {words}"
        words = ", ".join(
            f"{name} {self.totals[f'{name}_before']:,} before and {self.totals[f'{name}_after']:,} after"
            for name in MEASURES
        )
        return f"{rows}, {count(self.by_day.num_rows, 'day')}: {words}"

    def to_dict(self, most_queries: int = 100) -> dict[str, Any]:
        """The totals, the days, and the queries with the most matches, as JSON has them."""
        days = [{**line, "day": str(line["day"])} for line in self.by_day.to_pylist()]
        queries = self.top_queries(most_queries).to_pylist()
        return {"change": self.is_change, **self.totals, **self.counts, "days": days, "queries": queries}

    def top_queries(self, most: int) -> pa.Table:
        """The queries with the most matches, or with the most rows and keys that a change adds or takes away."""
        names = [name for name in self.by_query.column_names if name.startswith(("rows_only", "keys_only"))]
        names = names if self.is_change else ["matches"]
        weights = self.by_query[names[0]]
        for name in names[1:]:
            weights = pc.add(weights, self.by_query[name])
        order = pc.sort_indices(
            pa.table({"weight": weights, "query": self.by_query["query"]}),
            [("weight", "descending"), ("query", "ascending")],
        )
        return self.by_query.take(order[:most])

    def picture(self) -> bytes:
        """A picture of the days, and of the queries with the most matches or changes, as PNG."""
        from vedette.backtesting.picture import draw

        return draw(self)

    def save_picture(self, path: str | Path) -> None:
        """Write the picture to a file."""
        Path(path).write_bytes(self.picture())


def count_keys(events: pa.Table) -> KeyCounts:
    """Distinct keys from the lines of EVENTS."""
    flagged = events.select(list(EVENT_KEYS))
    for side in (0, 1):
        notified = pc.greater(events[f"notifications_{side}"], 0).cast(pa.int64())
        flagged = flagged.append_column(f"keys_{side}", notified)
    total = _distinct(flagged, ["key"], [])
    return KeyCounts(
        add_up([flagged], ["day", "query"], ["keys_0", "keys_1"]),
        _distinct(flagged, ["query", "key"], ["query"]),
        _distinct(flagged, ["day", "key"], ["day"]).select(["day", "keys_0", "keys_1"]),
        (_sum(total, "keys_0"), _sum(total, "keys_1")),
    )


def _distinct(flagged: pa.Table, keys: Sequence[str], groups: Sequence[str]) -> pa.Table:
    """By group, how many keys are on each side, and on one side alone."""
    each = add_up([flagged], keys, ["keys_0", "keys_1"])
    for side in (0, 1):
        each = each.set_column(len(keys) + side, f"keys_{side}", pc.greater(each[f"keys_{side}"], 0).cast(pa.int64()))
    alone = {side: pc.greater(each[f"keys_{side}"], each[f"keys_{1 - side}"]).cast(pa.int64()) for side in (0, 1)}
    each = each.append_column("only_0", alone[0]).append_column("only_1", alone[1])
    return add_up([each], groups, ["keys_0", "keys_1", "only_0", "only_1"]) if groups else each


def assemble(
    matches: pa.Table, events: pa.Table, keys: KeyCounts, ids: Sequence[pa.Array], counts: dict[str, int]
) -> Backtest:
    """The tables. `events` are summed by day and query; `ids` are those of the active queries of each side."""
    of_days, of_queries = pc.is_null(matches["query"]), pc.is_valid(matches["query"])
    rows = matches.filter(of_days)
    pairs = _join(["day", "query"], [matches.filter(of_queries), events, keys.by_day_and_query])
    every = pa.table({"query": pc.unique(pa.concat_arrays(list(ids)))})
    renamed = keys.by_query.rename_columns(["query", "keys_0", "keys_1", "keys_only_0", "keys_only_1"])
    queries = _join(["query"], [every, pairs.drop_columns(["day", "keys_0", "keys_1"]), renamed]).sort_by("query")
    days = _join(["day"], [pairs.drop_columns(["query", "keys_0", "keys_1"]), keys.by_day])
    matched = rows.select(["day", "rows", "matches_0", "matches_1"]).rename_columns(
        ["day", "rows", "matched_rows_0", "matched_rows_1"]
    )
    days = _join(["day"], [matched, days.drop_columns(["rows"])]).sort_by("day")
    is_change = len(ids) == 2
    totals = {"rows": _sum(days, "rows")}
    for name in ("matched_rows", *MEASURES):
        for side, label in enumerate(_SIDES[: len(ids)]):
            value = keys.total[side] if name == "keys" else _sum(days, f"{name}_{side}")
            totals[f"{name}_{label}" if is_change else name] = value
    by_query = _name(queries, ["query", *_sided(MEASURES, ids), *_sided(("only", "keys_only"), ids, is_change)])
    if is_change:
        names = [
            name.replace("only_", "rows_only_", 1) if name.startswith("only_") else name
            for name in by_query.column_names
        ]
        by_query = by_query.rename_columns(names).add_column(1, "change", _changes(by_query["query"], ids))
    pairs = pairs.sort_by([("day", "ascending"), ("query", "ascending")])
    by_day = _name(days, ["day", "rows", *_sided(("matched_rows", *MEASURES), ids)])
    return Backtest(by_day, by_query, _name(pairs, ["day", "query", *_sided(MEASURES, ids)]), totals, is_change, counts)


def _sided(names: Sequence[str], ids: Sequence[pa.Array], wanted: bool = True) -> list[str]:
    return [f"{name}_{side}" for name in names for side in range(len(ids))] if wanted else []


def _name(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """These columns, with the names of sides instead of their numbers."""
    is_change = any(name.endswith("_1") for name in columns)
    chosen = table.select(list(columns))
    sides = {"_0": "_before" if is_change else "", "_1": "_after"}
    return chosen.rename_columns([name[:-2] + sides[name[-2:]] if name[-2:] in sides else name for name in columns])


def _join(keys: Sequence[str], tables: Sequence[pa.Table]) -> pa.Table:
    """Lines of tables with different counts, joined by their keys; a count that is missing is 0."""
    counts = list(dict.fromkeys(name for table in tables for name in table.column_names if name not in keys))
    filled = []
    for table in tables:
        zeros = pa.array([0] * table.num_rows, pa.int64())
        columns = [table[name] if name in table.column_names else zeros for name in (*keys, *counts)]
        filled.append(pa.table(columns, names=[*keys, *counts]))
    return add_up(filled, keys, counts)


def _changes(queries: pa.ChunkedArray, ids: Sequence[pa.Array]) -> pa.Array:
    before, after = (pc.is_in(queries, each) for each in ids)
    return pc.if_else(pc.and_(before, after), "kept", pc.if_else(before, "removed", "added"))


def _sum(table: pa.Table, name: str) -> int:
    return int(pc.sum(table[name]).as_py() or 0)


def empty_counts(id_type: pa.DataType, keys: Sequence[str]) -> pa.Table:
    """A table of MATCHES or EVENTS without lines."""
    counts = MATCH_COUNTS if tuple(keys) == MATCH_KEYS else EVENT_COUNTS
    types = {"day": pa.date32(), "query": id_type, "key": pa.large_string()}
    columns = [(name, types[name]) for name in keys] + [(name, pa.int64()) for name in counts]
    return pa.schema(columns).empty_table()
