"""`vd.backtest`: runs queries over a history in this process, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vedette.backtesting.counts import (
    EVENT_COUNTS,
    EVENT_KEYS,
    MATCH_COUNTS,
    MATCH_KEYS,
    Tally,
    add_up,
    count_events,
    count_matches,
    plain_type,
    read_moments,
)
from vedette.backtesting.result import Backtest, assemble, count_keys, empty_counts
from vedette.errors import QueryError
from vedette.queries.query_options import PER_QUERY

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet


def backtest(
    queries: QuerySet,
    rows: Any,
    *,
    time: str,
    key: str | None = None,
    against: QuerySet | None = None,
    **options: Any,
) -> Backtest:
    """What the queries would have matched and reported over a history of rows, by day and by query.

    `rows` are those of `match`, or an iterable of such batches, in the order of `time`, a column of timestamps. With a
    `key`, events are those of `border` with the same `options`. `against` is the set after a change: the result then
    compares it with `queries`. `now()` in a query is the time of each row. Days are those of the set's time zone.

    >>> from vedette import QuerySet
    >>> alerts = QuerySet("symbol string, price double, ts timestamp")
    >>> alerts.add("cheap", "price < 40")
    >>> from datetime import datetime
    >>> times = [datetime(2026, 3, 2, 14), datetime(2026, 3, 2, 15), datetime(2026, 3, 3, 14)]
    >>> history = {"symbol": ["IBM"] * 3, "price": [41.0, 39.0, 38.0], "ts": times}
    >>> result = backtest(alerts, history, time="ts", key="symbol")
    >>> result.by_query.to_pylist()
    [{'query': 'cheap', 'matches': 2, 'events': 1, 'keys': 1, 'notifications': 1}]
    """
    sets = check_sets(queries, against)
    monitors = [] if key is None else [_monitored(each, options).border(key=key, time=time, **options) for each in sets]
    if options and key is None:
        raise QueryError(f"{next(iter(options))} is an option of events, which need a key", option="key")
    id_type = plain_type(sets[0].ids.type)
    matches, events = Tally(MATCH_KEYS, MATCH_COUNTS), Tally(EVENT_KEYS, EVENT_COUNTS)
    matches.add(empty_counts(id_type, MATCH_KEYS))
    for batch in _batches(rows):
        read_moments(batch, sets[0], time)
        matches.add(count_matches(sets, batch, time))
        for side, monitor in enumerate(monitors):
            for table in monitor.step_batches(batch, advance=False):
                if table.num_rows:
                    events.add(count_events(table, side, sets[side].time_zone))
    lines = events.total()
    lines = empty_counts(id_type, EVENT_KEYS) if lines is None else lines
    total = matches.total()
    assert total is not None
    dropped = {"late": sum(each.n_late for each in monitors), "null_keys": sum(each.n_null_keys for each in monitors)}
    ids = [active_ids(each) for each in sets]
    return assemble(total, add_up([lines], MATCH_KEYS, EVENT_COUNTS), count_keys(lines), ids, dropped)


def _monitored(queries: QuerySet, options: Mapping[str, Any]) -> QuerySet:
    """The set, or a copy if monitoring removes queries from it."""
    removes = options.get("once") == PER_QUERY or queries.has_option("once", PER_QUERY)
    return type(queries).from_bytes(queries.to_bytes()) if removes else queries


def check_sets(queries: QuerySet, against: QuerySet | None) -> list[QuerySet]:
    """The sets of both sides. Raises QueryError unless they can be compared."""
    if against is None:
        return [queries]
    if queries.time_zone != against.time_zone:
        raise QueryError(
            f"is in time zone {against.time_zone}, but the other set in {queries.time_zone}", option="against"
        )
    kinds = {plain_type(each.ids.type) for each in (queries, against) if len(each)}
    if len(kinds) > 1:
        raise QueryError("has ids of another type than the other set; ids are strings or integers", option="against")
    return [queries, against]


def active_ids(queries: QuerySet) -> pa.Array:
    """The ids of the active queries, as tables have them."""
    view = queries.view()
    ids = queries.ids.filter(pa.array(~view.versions.is_removed))
    return ids.cast(plain_type(ids.type))


def _batches(rows: Any) -> Iterator[pa.Table]:
    """The rows as Arrow tables, one after another."""
    is_one = isinstance(rows, (pa.Table, pa.RecordBatch, Mapping)) or hasattr(rows, "columns")
    for batch in [rows] if is_one or not isinstance(rows, Iterable) else rows:
        yield pa.table(batch) if isinstance(batch, Mapping) else batch
