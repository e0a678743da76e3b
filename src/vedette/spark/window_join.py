"""Window joins inside Spark: rows of two or more DataFrames in, pairs of rows that join out.

If all queries equate a field of every stream, rows go to shards by its value; rows with a null there join nothing and
are dropped. Otherwise shards form a grid, on which every pair of rows meets once. Windows that count rows need the
whole stream in order, and so one shard. All shards get the latest time of each stream, so that late and expired
rows do not depend on the number of shards.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from vedette.data.schema import INTEGER_BITS
from vedette.errors import PipelineError, RowError
from vedette.operators.stable_ids import EVENT_ID
from vedette.spark.bad_rows import BadRows, is_no_time, is_null
from vedette.spark.checks import (
    check_choice,
    check_sides,
    check_state_store,
    find_carried,
    find_columns,
    find_name,
    find_time,
    has_watermark,
    name_carried,
    to_plain,
)
from vedette.spark.declared import Declared
from vedette.spark.observation import check_observe
from vedette.spark.session_checks import check_session
from vedette.spark.shards import packing
from vedette.spark.shards.transform import (
    STREAM_INLINE_BYTES,
    answer_type,
    check_shards,
    choose_shards,
    pack_rows,
    run,
    to_fact,
    wide,
)
from vedette.spark.shipping.query_source import QuerySource

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Observation

    from vedette.operators.side_columns import SideColumns
    from vedette.operators.window_join.query_set import JoinQuerySet
    from vedette.registry.read.followed import Followed
    from vedette.registry.registry import Registry

BATCH_SHARDS = 4  # per shuffle partition, on a batch without copies: the rows of a shard are in memory together
LAYOUTS = ("equality", "grid", "one")
# Equal values of these have equal bytes.
_HASHED = ("string", "binary", *INTEGER_BITS, "date", "timestamp", "timestamp_ntz")
_WORKER = "vedette.spark.workers.window_join"
_CALL = "vs.window_join"


def window_join(
    left: DataFrame | None = None,
    right: DataFrame | None = None,
    pairs: JoinQuerySet | Followed | None = None,
    *,
    frames: Mapping[str, DataFrame] | None = None,
    late: Literal["drop", "apply"] = "drop",
    max_state_rows: int | None = None,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    metadata: Sequence[str] | None = None,
    event_id: bool | None = None,
    layout: Literal["equality", "grid", "one"] | None = None,
    shards: int | None = None,
    checkpoint: str | Path | None = None,
    on_bad_row: Literal["error", "drop", "dead-letter"] = "error",
    dead_letters: str | Path | Registry | None = None,
    snapshot_dir: str | Path | None = None,
    observe: str | Observation | None = None,
    schema: Mapping[str, t.StructType | str] | None = None,
    streaming: bool | None = None,
    **roles: str | None,
) -> DataFrame:
    """The pairs of rows that join: `out = vs.window_join(bids, asks, pairs, left_time="ts", right_time="ts")`.

    One row per query and pair, with a column `query`, and per stream a column with its name, which has the id of the
    row. `left_time` and `left_id` name columns of the left stream, and likewise for every stream; the default column of
    ids is `id`. Pass three or more DataFrames by name: `frames={"a": ..., "b": ..., ...}`.

    `columns` brings columns of the rows of a pair, as `left_...` and `right_...`, `metadata` fields of the query's
    metadata, and `event_id` a stable id, as `JoinQuerySet.window` does. No column that is not asked for is sent to
    workers.

    A stream stores the rows that later rows may join with in Spark's state store, in `shards` parts (default: 8 per
    core; one per core on a grid). `layout` says which rows meet in a shard; by default it depends on the queries. A
    checkpoint fixes both; if `checkpoint` names the stream's checkpoint, the number is read from there.
    `max_state_rows` limits the rows of a shard. A batch stores nothing.

    A set above 4 MB (on a stream: 256 KB) is sent to the workers as a file: in `snapshot_dir`, which they must be able
    to read, or, without it, as an artifact of the session. A set from `registry.follow` is followed while it changes,
    on a grid; answers then have a last column `version`.

    `on_bad_row` says what happens to a row that cannot be processed: it stops the stream ("error"), is dropped, or
    becomes a "dead-letter" with the reason in `dead_letters`, a folder or a registry. See docs/spark.md.

    `observe` is a name under which Spark reports what workers count, or an `Observation`; see docs/spark.md.

    `schema` and `streaming` declare the columns of each DataFrame by its name, such as `left` and `right`, and
    whether they are streams, where Spark cannot be asked: in a flow of a declarative pipeline. See
    docs/declarative-pipelines.md.
    """
    _check_frames({"left": left, "right": right, **(frames or {})})
    given = QuerySource.read(pairs, _CALL, "window join", "after the DataFrames")
    queries: JoinQuerySet = given.queries
    check_shards(shards)
    check_observe(observe)
    bad_rows = BadRows.read(on_bad_row, dead_letters, observe, "window join")
    named_columns: dict[str, Any] = {**{f"{stream}_id": "id" for stream in queries.streams}, **roles}
    options: dict[str, Any] = {
        "late": late,
        "max_state_rows": max_state_rows,
        "columns": to_plain(columns),
        "metadata": None if metadata is None else list(metadata),
        "event_id": event_id,
    }
    monitor = queries.window(threads=None, **options, **named_columns)  # raises if an option is invalid
    declared = Declared.read_sides(schema, streaming, queries.streams)
    named = _name_frames(queries, left, right, frames)
    is_stream = check_sides(_CALL, named, declared)
    rows_of = {stream: declared[stream].apply(rows) for stream, rows in named.items()}
    sides = _find_sides(given, rows_of, named_columns, monitor.options.columns)
    time_type = _check_times(queries, sides)
    first = sides[0].rows
    if is_stream:
        check_state_store(first, _CALL)
    chosen, on = _choose_layout(given, layout, shards)
    for_each = BATCH_SHARDS if chosen == "equality" else 1
    n_shards = choose_shards(
        first,
        1 if chosen == "one" else shards,
        checkpoint,
        is_stream=is_stream,
        on_grid=chosen == "grid",
        for_each=for_each,
    )
    sent = given if metadata else given.without_metadata()
    parcel = sent.pack(first, snapshot_dir, STREAM_INLINE_BYTES if is_stream else None, is_stream=is_stream)
    packed, reporters = [], []
    for number, side in enumerate(sides):
        lines = packing.by_grid(n_shards, number) if chosen == "grid" else packing.by_key(n_shards)
        reporters.append([line[0] for line in lines])
        packing_plan = {
            "worker": _WORKER,
            "side": number,
            "stream": side.stream,
            "id": side.id.name,
            "time": side.time and side.time.name,
            "lines": lines,
            "drops_nulls": chosen == "equality",  # a null equals nothing, so such rows join nothing
            "notified": packing.label_shards(n_shards),
        }
        reasons = is_null("the id", side.id) | ({} if side.time is None else is_no_time("the time", side.time))
        judged = bad_rows.judge(reasons, side.stream)
        packed.append(pack_rows(side.rows, side.needed_columns(given, on), parcel["sender"], packing_plan, judged))
    found = {name: column for side in sides for name, column in side.roles.items()}
    is_timed = is_stream and all(side.time is not None and has_watermark(side.time) for side in sides)
    shared = " = ".join(f"{stream}.{field}" for stream, field in on.items())
    facts = {"operator": "window join", "layout": chosen, "on": shared, "watermark": is_timed, "shards": n_shards}
    plan = {
        "worker": _WORKER,
        "parcel": parcel,
        "options": options | {name: column.name for name, column in found.items()},
        "streams": queries.streams,
        "reporters": reporters,  # one of the shards of each row
        "time_type": time_type,
        "facts": facts | {name: to_fact(column) for name, column in found.items()} | given.facts,
        "is_timed": is_timed,
        "is_nullable": bool(monitor.options.columns),
    }
    query = t.StructField("query", given.id_type)
    names = [t.StructField(side.stream, answer_type(side.id)) for side in sides]
    carried = name_carried(monitor.options.columns, [side.carried for side in sides])
    texts = [*(metadata or ()), *([EVENT_ID] if monitor.options.has_event_ids else [])]
    more = [*carried, *(t.StructField(name, t.StringType()) for name in texts)]
    answer = t.StructType([query, *names, *more, *given.added_columns])
    union = functools.reduce(lambda some, more: some.union(more), packed)
    return run(union, parcel["sender"], plan, answer, observe, "window join", is_stream=is_stream)


@dataclass(frozen=True)
class _Side:
    """A stream of the set, its rows, and the columns of their ids and times."""

    stream: str
    rows: DataFrame
    id: t.StructField
    time: t.StructField | None
    carried: list[t.StructField]

    @property
    def roles(self) -> dict[str, t.StructField]:
        """The columns by the options that name them."""
        named = {f"{self.stream}_time": self.time, f"{self.stream}_id": self.id}
        return {name: column for name, column in named.items() if column is not None}

    def needed_columns(self, given: QuerySource, on: Mapping[str, str]) -> list[t.StructField]:
        """The columns to send: fields of queries, columns of answers, id and time. The first decides the shard."""
        used = given.fields_of(self.stream)
        fields = {field.column.lower() for field in given.queries.schema_of(self.stream) if field.name in used}
        columns = {column.name: column for column in self.carried}
        columns |= {column.name: column for column in self.rows.schema.fields if column.name.lower() in fields}
        columns |= {column.name: wide(column) for column in self.roles.values()}
        decides = on.get(self.stream, self.id.name).lower()
        return sorted(columns.values(), key=lambda column: column.name.lower() != decides)


def _check_frames(frames: Mapping[str, Any]) -> None:
    """Raise PipelineError if a set is passed as a DataFrame, which happens if one is forgotten."""
    for name, rows in frames.items():
        if not isinstance(rows, DataFrame) and (hasattr(rows, "shared_equality") or hasattr(rows, "to_plain")):
            raise PipelineError(
                f"{_CALL} takes the DataFrames first, then the set; {name} must be a DataFrame, got "
                f"{type(rows).__name__}; check that no DataFrame is missing"
            )


def _name_frames(
    pairs: JoinQuerySet, left: Any, right: Any, frames: Mapping[str, DataFrame] | None
) -> dict[str, DataFrame]:
    """The DataFrame of each stream, in the order of the set."""
    streams = pairs.streams
    if frames is None:
        if len(streams) > 2:
            raise PipelineError(
                f"the set joins {len(streams)} streams; pass their DataFrames by name: "
                f"frames={{{', '.join(f'{stream!r}: ...' for stream in streams)}}}"
            )
        frames = dict(zip(streams, (left, right), strict=True))
    elif left is not None or right is not None:
        raise PipelineError("frames= must name all DataFrames; omit left and right")
    if set(frames) != set(streams):
        raise PipelineError(
            f"frames= must name the DataFrame of each stream: {', '.join(streams)}; got: {', '.join(map(str, frames))}"
        )
    return {stream: frames[stream] for stream in streams}


def _find_sides(
    given: QuerySource, frames: dict[str, DataFrame], columns: Mapping[str, str | None], carried: SideColumns
) -> list[_Side]:
    sides = []
    for stream, rows in frames.items():
        check_session(rows, given.queries)
        schema = given.queries.schema_of(stream)
        id_role, time_role = f"{stream}_id", f"{stream}_time"
        id_ = find_name(rows, schema, columns[id_role], id_role, stream)
        time = columns.get(time_role)
        time_column = None if time is None else find_time(rows, schema, time, time_role, stream)
        sides.append(_Side(stream, rows, id_, time_column, find_carried(rows, carried.of[stream], stream)))
        find_columns(rows, schema, given.fields_of(stream), stream, follows=given.followed is not None)
    return sides


def _check_times(pairs: JoinQuerySet, sides: list[_Side]) -> str:
    """The type of all times; empty if rows have no times. Raises an error if a window does not fit it."""
    times = {side.stream: wide(side.time).dataType.simpleString() for side in sides if side.time is not None}
    if len(set(times.values())) > 1:
        types = ", ".join(f"{stream}: {type_}" for stream, type_ in times.items())
        raise RowError(f"the times of the streams have different types ({types}); cast them to one type")
    options: dict[str, Any] = {name: column.name for side in sides for name, column in side.roles.items()}
    monitor = pairs.window(**options)
    for type_ in set(times.values()):
        monitor.set_time_type(type_)
    return next(iter(times.values()), "")


def _choose_layout(given: QuerySource, wanted: str | None, shards: int | None) -> tuple[str, dict[str, str]]:
    """Which rows meet in a shard, and the field that decides, by stream; empty if no field decides."""
    pairs: JoinQuerySet = given.queries
    shared = pairs.shared_equality() or {}
    types = {field.type for stream, name in shared.items() for field in pairs.schema_of(stream) if field.name == name}
    can_hash = len(types) == 1 and next(iter(types)).name in _HASHED
    if given.followed is not None and given.followed.info.windows != "time":
        reasons = dict.fromkeys(
            LAYOUTS[:2],
            "a later query may have a window that counts rows, unless the set is created with windows='time'",
        )
    elif pairs.has_counts:
        reasons = dict.fromkeys(LAYOUTS[:2], "a query has a window that counts rows, and needs its streams in order")
    elif len(pairs.streams) > 2:
        reasons = {"grid": "a grid is for two streams"}
    else:
        reasons = {}
    if given.followed is not None:
        reasons.setdefault("equality", "the set is followed, and a later query may have no equality")
    if not can_hash:
        reasons.setdefault("equality", f"the queries have no equality in common, of type {', '.join(_HASHED)}")
    possible = [each for each in LAYOUTS if each not in reasons]
    if wanted is not None:
        check_choice("layout", wanted, LAYOUTS)
        if wanted in reasons:
            raise PipelineError(
                f"is {wanted!r}, which is not possible: {reasons[wanted]}; use {' or '.join(map(repr, possible))}",
                option="layout",
            )
    layout = wanted or possible[0]
    if layout == "one" and shards not in (None, 1):
        why = next(iter(reasons.values())) if wanted is None else "layout='one'"
        raise PipelineError(f"is {shards}, but the join needs one shard: {why}; omit it", option="shards")
    return layout, shared if layout == "equality" else {}
