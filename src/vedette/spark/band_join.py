"""Band joins inside Spark: two DataFrames with insertions and deletions of values in, changes of all answers out.

Shards form a grid, so that every pair of values meets in exactly one of them. If several shards report an affected
query, one more shuffle removes the duplicates within the micro-batch, without state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette.spark.bad_rows import BadRows, is_no_number, is_null
from vedette.spark.checks import (
    check_sides,
    check_state_store,
    find_carried,
    find_name,
    find_op,
    find_value,
    name_carried,
    quoted,
    to_plain,
)
from vedette.spark.declared import Declared, remember_columns
from vedette.spark.observation import check_observe
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
from vedette.spark.shipping.query_sets import worker_function
from vedette.spark.shipping.query_source import QuerySource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Observation

    from vedette.operators.band_join.monitor import KnownId, Report, UnknownId
    from vedette.operators.band_join.query_set import BandQuerySet
    from vedette.registry.read.followed import Followed
    from vedette.registry.registry import Registry

_WORKER = "vedette.spark.workers.band_join"
_CALL = "vs.band_join"


def band_join(
    left: DataFrame,
    right: DataFrame,
    bands: BandQuerySet | Followed,
    *,
    report: Report = "pairs",
    left_id: str = "id",
    left_value: str = "value",
    right_id: str = "id",
    right_value: str = "value",
    op: str | None = None,
    left_op: str | None = None,
    right_op: str | None = None,
    known_id: KnownId = "error",
    unknown_id: UnknownId = "log",
    max_state_rows: int | None = None,
    columns: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    metadata: Sequence[str] | None = None,
    shards: int | None = None,
    checkpoint: str | Path | None = None,
    on_bad_row: Literal["error", "drop", "dead-letter"] = "error",
    dead_letters: str | Path | Registry | None = None,
    snapshot_dir: str | Path | None = None,
    observe: str | Observation | None = None,
    schema: Mapping[str, t.StructType | str] | None = None,
    streaming: bool | None = None,
) -> DataFrame:
    """The changes of the answers: `out = vs.band_join(bids, asks, bands, left_value="price", right_value="price")`.

    With report="pairs", one row per change, with columns `sign` (1 for a new pair, -1 for a removed one), `query`,
    `left` and `right`, the ids of the values. With report="queries", only `query`, each affected query once per
    micro-batch. docs/spark.md describes what several rows of one id in a micro-batch mean.

    A row inserts a value, unless the column `op` (of one side: `left_op`, `right_op`) is 'delete'. Inserting an id that
    already has a value is an error or replaces the value (`known_id`). Deleting an id without a value is logged by a
    worker, reported as a row with sign 0, or an error (`unknown_id`).

    `columns` brings columns of both rows of a pair, as `left_...` and `right_...`, and `metadata` fields of the query's
    metadata, as `BandQuerySet.monitor` does. No column that is not asked for is sent to workers.

    A stream stores all values in Spark's state store, in `shards` parts (default: one per core). A checkpoint fixes the
    number; if `checkpoint` names the stream's checkpoint, it is read from there. `max_state_rows` limits the values of
    a shard. A batch stores nothing and returns the pairs at its end.

    A set above 4 MB (on a stream: 256 KB) is sent to the workers as a file: in `snapshot_dir`, which they must be able
    to read, or, without it, as an artifact of the session. A set from `registry.follow` is followed while it changes;
    answers then have a last column `version`.

    `on_bad_row` says what happens to a row that cannot be processed: it stops the stream ("error"), is dropped, or
    becomes a "dead-letter" with the reason in `dead_letters`, a folder or a registry. See docs/spark.md.

    `observe` is a name under which Spark reports what workers count, or an `Observation`; see docs/spark.md.

    `schema` and `streaming` declare the columns of each DataFrame by its name, `left` and `right`, and
    whether they are streams, where Spark cannot be asked: in a flow of a declarative pipeline. See
    docs/declarative-pipelines.md.
    """
    given = QuerySource.read(bands, _CALL, "band join")
    declared = Declared.read_sides(schema, streaming, ("left", "right"))
    is_stream = check_sides(_CALL, {"left": left, "right": right}, declared)
    left, right = declared["left"].apply(left), declared["right"].apply(right)
    check_shards(shards)
    check_observe(observe)
    bad_rows = BadRows.read(on_bad_row, dead_letters, observe, "band join")
    options: dict[str, Any] = {
        "report": report,
        "known_id": known_id,
        "unknown_id": unknown_id,
        "max_state_rows": max_state_rows,
        "columns": to_plain(columns),
        "metadata": None if metadata is None else list(metadata),
    }
    monitor = given.queries.monitor(**options)  # raises QueryError if an option is invalid
    ids = [find_name(left, None, left_id, "left_id", "left"), find_name(right, None, right_id, "right_id", "right")]
    values = [
        find_value(left, left_value, "left_value", "left"),
        find_value(right, right_value, "right_value", "right"),
    ]
    ops = [_find_op(left, "left", op, left_op), _find_op(right, "right", op, right_op)]
    carried = [find_carried(rows, monitor.columns.of[side], side) for side, rows in (("left", left), ("right", right))]
    if is_stream:
        check_state_store(left, _CALL)
    n_shards = choose_shards(left, shards, checkpoint, is_stream=is_stream, on_grid=True)
    sent = given if metadata else given.without_metadata()
    parcel = sent.pack(left, snapshot_dir, STREAM_INLINE_BYTES if is_stream else None, is_stream=is_stream)
    notified = packing.label_shards(n_shards)  # all shards, because all report changes of queries
    grid = [packing.by_grid(n_shards, side) for side in range(2)]
    packed = []
    for side, rows in enumerate((left, right)):
        own = [wide(ids[side]), t.StructField(values[side].name, t.DoubleType()), *map(wide, ops[side])]
        more = {"carried": list(monitor.columns.of[("left", "right")[side]])}
        packing_plan = {"worker": _WORKER, "side": side, "lines": grid[side], "notified": notified} | more
        judged = bad_rows.judge(_find_reasons(ids[side], values[side], ops[side]), ("left", "right")[side])
        packed.append(pack_rows(rows, [*own, *carried[side]], parcel["sender"], packing_plan, judged))
    plan = {
        "worker": _WORKER,
        "parcel": parcel,
        "options": options,
        "reporters": [[line[0] for line in lines] for lines in grid],  # one of the shards of each row
        "facts": {
            "operator": "band join",
            "shards": n_shards,
            "left_id": to_fact(ids[0]),
            "right_id": to_fact(ids[1]),
        }
        | given.facts,
        "is_timed": False,
        "is_nullable": bool(monitor.columns) or unknown_id == "report",
    }
    texts = [t.StructField(name, t.StringType()) for name in metadata or ()]
    query, union = t.StructField("query", given.id_type), packed[0].union(packed[1])
    if report == "pairs":
        ends = [t.StructField(side, answer_type(column)) for side, column in zip(("left", "right"), ids, strict=True)]
        own = [t.StructField("sign", t.ByteType()), query, *ends]
        answer = t.StructType([*own, *name_carried(monitor.columns, carried), *texts, *given.added_columns])
        return run(union, parcel["sender"], plan, answer, observe, "band join", is_stream=is_stream)
    answer = t.StructType([query, *texts, *given.added_columns])
    affected = run(union, parcel["sender"], plan, answer, observe, "band join", is_stream=is_stream)
    if n_shards == 1:
        return affected
    distinct = worker_function(_WORKER, "keep_distinct", parcel["sender"])
    return remember_columns(affected, answer).repartition("query").mapInArrow(distinct, answer)


def _find_reasons(id_: t.StructField, value: t.StructField, ops: list[t.StructField]) -> dict[str, Column]:
    """When a row of a side is bad. The value of a deletion does not matter."""
    reasons = is_null("the id", id_)
    if not ops:
        return reasons | is_no_number("the value", value)
    op = f.coalesce(f.col(quoted(ops[0].name)), f.lit(""))
    reasons[f"column {ops[0].name!r} is neither 'insert' nor 'delete'"] = ~op.isin("insert", "delete")
    return reasons | is_no_number("the value", value, op != "delete")


def _find_op(rows: DataFrame, side: str, both: str | None, own: str | None) -> list[t.StructField]:
    """The column that says whether each row of a side is inserted or deleted, if there is one."""
    if own is not None:
        return [find_op(rows, own, f"{side}_op", side)]
    return [] if both is None else [find_op(rows, both, "op", side)]
