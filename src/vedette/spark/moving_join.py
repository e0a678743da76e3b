"""Moving joins inside Spark: two DataFrames of moving rectangles in, changes of the intersecting pairs out.

Shards form a grid, so that every pair of objects meets in exactly one of them. All shards get all times, so that
answers and lateness do not depend on the number of shards.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette import __version__
from vedette.data.durations import Interval
from vedette.errors import PipelineError, QueryError, RowError
from vedette.operators.moving_join.batch import SETS
from vedette.operators.moving_join.columns import MovingColumns
from vedette.operators.moving_join.late_rows import Late
from vedette.operators.moving_join.motion_rows import FARTHEST
from vedette.operators.moving_join.moving_join import MovingJoin
from vedette.operators.moving_join.rows import AXES, MovingTable
from vedette.settings import settings
from vedette.spark.bad_rows import BadRows, is_no_number, is_null
from vedette.spark.checks import (
    check_sides,
    check_state_store,
    find_carried,
    find_column,
    find_name,
    find_time,
    find_value,
    quoted,
    to_plain,
)
from vedette.spark.declared import Declared
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
from vedette.spark.shipping.query_source import QuerySource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Observation

    from vedette.operators.moving_join.zone_set import ZoneSet
    from vedette.registry.read.followed import Followed
    from vedette.registry.registry import Registry

REMOVED = "removed"  # the default column of removals
_WORKER = "vedette.spark.workers.moving_join"
_ZONES_WORKER = "vedette.spark.workers.zones"
_CALL = "vs.moving_join"


def moving_join(
    a_updates: DataFrame | ZoneSet | Followed,
    b_updates: DataFrame | ZoneSet | Followed,
    *,
    max_update_interval: Interval,
    a_id: str = "id",
    b_id: str = "id",
    time: str = "time",
    a_time: str | None = None,
    b_time: str | None = None,
    removed: str | None = None,
    a_removed: str | None = None,
    b_removed: str | None = None,
    expire_overdue: bool = False,
    static: Literal["a", "b"] | None = None,
    late: Late = "apply",
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
    """The changes of the pairs: `changes = vs.moving_join(vessels, storms, max_update_interval=60, a_id="mmsi")`.

    One row per change, with columns `sign`, `a`, `b`, `start` and `end`, as `MovingJoin.update` returns them. Rows are
    applied in the order of their times, and each time is one update. Columns of sides and speeds have the names that
    `MovingJoin` uses. A time is a number; a timestamp is converted to seconds since 1970, also in the answer. A row
    whose boolean column `removed` is true removes its object. `a_time` and `a_removed` name columns of one set.

    `max_update_interval` is a number in the unit of the times. If times are in seconds, it may be a duration:
    "60 seconds". Rows older than the time that the join has reached are `late`: they are applied from that time on,
    dropped, or an error.

    One set may be zones instead of a DataFrame: a `ZoneSet`, or a set from `registry.follow`. It is then the static
    set. A followed set is followed while it changes: zones that are added, replaced or removed between two
    micro-batches change at the time that the join had reached before the second. Answers then have a last column
    `version`. A large set is sent to the workers as a file, as by `vs.border`.

    `columns` brings columns of the rows of a pair, as `a_...` and `b_...`, as `MovingJoin` does. If one set is zones,
    `metadata` brings fields of their metadata. No column that is not asked for is sent to workers.

    A stream stores the objects in Spark's state store, in `shards` parts (default: one per core). A checkpoint fixes
    the number; if `checkpoint` names the stream's checkpoint, it is read from there. A batch is sorted and replayed,
    and stores nothing.

    `on_bad_row` says what happens to a row that cannot be processed: it stops the stream ("error"), is dropped, or
    becomes a "dead-letter" with the reason in `dead_letters`, a folder or a registry. See docs/spark.md.

    `observe` is a name under which Spark reports what workers count, or an `Observation`; see docs/spark.md.

    `schema` and `streaming` declare the columns of each DataFrame by its name, `a` and `b`, and
    whether they are streams, where Spark cannot be asked: in a flow of a declarative pipeline. See
    docs/declarative-pipelines.md.
    """
    moving = MovingJoin(max_update_interval, expire_overdue=expire_overdue, static=static, late=late)
    columns, metadata = to_plain(columns), metadata if metadata is None else list(metadata)
    check_shards(shards)
    check_observe(observe)
    bad_rows = BadRows.read(on_bad_row, dead_letters, observe, "moving join")
    given = dict(zip(SETS, (a_updates, b_updates), strict=True))
    zones = _find_zones(given)
    carried = MovingColumns.read(columns, metadata, None if zones is None else zones.name)
    frames: dict[str, Any] = {name: rows for name, rows in given.items() if zones is None or name != zones.name}
    declared = Declared.read_sides(schema, streaming, list(frames))
    is_stream = check_sides(_CALL, frames, declared, "_updates")
    frames = {name: declared[name].apply(rows) for name, rows in frames.items()}
    n_dims = max(_table(name, rows).n_dims for name, rows in frames.items())
    if zones is not None:
        static = zones.check(static, n_dims)
    options = {
        "max_update_interval": moving.max_update_interval,
        "expire_overdue": moving.expire_overdue,
        "static": static,
    }
    named = {"a": (a_id, a_time, time, a_removed, removed), "b": (b_id, b_time, time, b_removed, removed)}
    sets = [
        _find_set(name, rows, named[name], n_dims, static == name, carried.of[name]) for name, rows in frames.items()
    ]
    if sets[0].has_timestamps != sets[-1].has_timestamps:
        types = " and ".join(
            f"{each.time.name!r} of set {each.name} is {each.time.dataType.simpleString()}" for each in sets
        )
        raise RowError(f"the times of both sets must be timestamps, or both numbers; {types}; cast one of them")
    first = sets[0].rows
    if is_stream:
        check_state_store(first, _CALL)
    n_shards = choose_shards(first, shards, checkpoint, is_stream=is_stream, on_grid=True)
    sender = __version__
    packed = []
    for each in sets:
        side = SETS.index(each.name)
        lines = packing.by_grid(n_shards, side)
        packing_plan = {
            "worker": _WORKER,
            "side": side,
            "names": list(each.columns),
            "n_dims": n_dims,
            "is_static": static == each.name,
            "lines": lines,
            "notified": [shard for line in lines for shard in line],
        }
        judged = bad_rows.judge(each.find_reasons(), each.name)
        needed = [*each.columns.values(), *each.carried]
        packed.append(pack_rows(each.rows, needed, sender, packing_plan, judged))
    roles = {f"{each.name}_{role}": to_fact(column) for each in sets for role, column in each.roles.items()}
    plan: dict[str, Any] = {
        "worker": _WORKER,
        "sender": sender,
        "parcel": {"token": f"late={late}"},  # without queries
        "options": options | {"columns": columns, "metadata": metadata},
        "n_dims": n_dims,
        "reporters": [[line[0] for line in packing.by_grid(n_shards, side)] for side in range(2)],
        "late": late,
        "max_answer_bytes": settings().max_answer_bytes,
        "facts": {"operator": "moving join", "shards": n_shards, "n_dims": n_dims} | options | roles,
        "is_timed": False,
        "is_nullable": bool(carried),
    }
    ids = {each.name: answer_type(each.id) for each in sets}
    added: list[t.StructField] = []
    if zones is not None:
        inline_bytes = STREAM_INLINE_BYTES if is_stream else None
        source = zones.source if metadata else zones.source.without_metadata()
        parcel = source.pack(first, snapshot_dir, inline_bytes, is_stream=is_stream)
        plan |= zones.plan(n_shards, parcel, plan)
        ids[zones.name], added = zones.source.id_type, zones.source.added_columns
    times = [t.StructField(name, t.DoubleType()) for name in ("start", "end")]
    own = [t.StructField("sign", t.ByteType()), *(t.StructField(name, ids[name]) for name in SETS), *times]
    carried_types = {each.name: [column.dataType for column in each.carried] for each in sets}
    more = [
        t.StructField(column, type_)
        for name, columns_of_set in carried.names.items()
        for column, type_ in zip(columns_of_set, carried_types.get(name) or repeat(t.StringType()), strict=False)
    ]
    union = functools.reduce(lambda some, more: some.union(more), packed)
    answer = t.StructType([*own, *more, *added])
    return run(union, sender, plan, answer, observe, "moving join", is_stream=is_stream)


def begin_with(zones: DataFrame, others: DataFrame, time: str = "time") -> DataFrame:
    """Zones with the first time of the other set as their time."""
    column = find_time(others, None, time)
    first = f.coalesce(f.min(column.name), f.lit(0).cast(column.dataType))
    return zones.crossJoin(others.agg(first.alias(column.name)))


@dataclass(frozen=True)
class _Zones:
    """The set of zones."""

    name: str
    source: QuerySource

    def check(self, static: str | None, n_dims: int) -> Literal["a", "b"]:
        """The static set. Raises an error if options or objects do not fit the zones."""
        if static not in (None, self.name):
            raise QueryError(f"set {self.name} has zones, so it is the static set; omit static; got {static!r}")
        if n_dims != self.source.queries.dimensions:
            have = "a z" if n_dims == 3 else "no z"
            raise RowError(f"the objects have {have}, but the zones have {self.source.queries.dimensions} dimensions")
        return "a" if self.name == "a" else "b"

    def plan(self, n_shards: int, parcel: dict[str, Any], plan: dict[str, Any]) -> dict[str, Any]:
        """The part of the plan about zones, which are not sent as rows."""
        side = SETS.index(self.name)
        return {
            "worker": _ZONES_WORKER,
            "zones": {"side": side, "lines": packing.by_grid(n_shards, side)},
            "parcel": parcel,
            "facts": plan["facts"] | self.source.facts,
        }


def _find_zones(given: dict[str, Any]) -> _Zones | None:
    """The set of zones, if there is one. An argument that is not a DataFrame must be zones."""
    found = [
        _Zones(name, QuerySource.read(each, _CALL, "moving join", "or a DataFrame"))
        for name, each in given.items()
        if not isinstance(each, DataFrame)
    ]
    if len(found) > 1:
        raise PipelineError(f"{_CALL} needs moving objects; pass a DataFrame of objects as one of the two sets")
    return found[0] if found else None


@dataclass(frozen=True)
class _Set:
    """The rows of a set, and the columns to send, by the names that a moving join uses."""

    name: str
    rows: DataFrame
    id: t.StructField
    time: t.StructField
    others: dict[str, t.StructField]
    carried: list[t.StructField]

    @property
    def roles(self) -> dict[str, t.StructField]:
        return {"id": self.id, "time": self.time}

    @property
    def columns(self) -> dict[str, t.StructField]:
        """The id is first: it decides the shard."""
        return {"id": wide(self.id), "time": t.StructField(self.time.name, t.DoubleType()), **self.others}

    def find_reasons(self) -> dict[str, Column]:
        """When a row is bad. The sides and speeds of an object that is removed do not matter."""
        others = dict(self.others)
        removed = others.pop(REMOVED, None)
        is_used = None if removed is None else ~f.coalesce(f.col(quoted(removed.name)), f.lit(False))
        reasons = is_null("the id", self.id) | is_no_number("the time", self.time, most=FARTHEST)
        for name, column in others.items():
            reasons |= is_no_number(name, column, is_used, FARTHEST)
        for low, high in ((f"{axis}_low", f"{axis}_high") for axis in AXES):
            if low in others:
                is_above = f.col(quoted(others[low].name)) > f.col(quoted(others[high].name))
                reasons[f"{low} is above {high}"] = is_above if is_used is None else is_above & is_used
        return reasons

    @property
    def has_timestamps(self) -> bool:
        return isinstance(self.time.dataType, t.TimestampType)


def _table(name: str, rows: DataFrame) -> MovingTable:
    return MovingTable(dict.fromkeys(rows.columns), name)


def _find_set(
    name: str, rows: DataFrame, named: tuple[Any, ...], n_dims: int, is_static: bool, carried: Sequence[str]
) -> _Set:
    """The columns of a set. `named` has the options of ids, own time, common time, own removals, common removals."""
    id_name, own_time, time, own_removed, removed = named
    time_role, time_name = ("time", time) if own_time is None else (f"{name}_time", own_time)
    removals = _find_removed(name, rows, own_removed, removed)
    used = _table(name, rows).find_used(n_dims, is_static, removals is not None)
    others = {each: t.StructField(find_value(rows, each, each, name).name, t.DoubleType()) for each in used}
    return _Set(
        name,
        rows,
        find_name(rows, None, id_name, f"{name}_id", name),
        find_time(rows, None, time_name, time_role, name),
        others | ({} if removals is None else {REMOVED: removals}),
        find_carried(rows, carried, name),
    )


def _find_removed(name: str, rows: DataFrame, own: str | None, both: str | None) -> t.StructField | None:
    """The column that says whether each row removes its object, if there is one."""
    role, wanted = ("removed", both) if own is None else (f"{name}_removed", own)
    if wanted is None and not _table(name, rows).has(REMOVED):
        return None
    column = find_column(rows, None, REMOVED if wanted is None else wanted, role, name)
    if not isinstance(column.dataType, t.BooleanType):
        raise RowError(
            f"{role} must name a boolean column, true for removed objects; column {column.name!r} is "
            f"{column.dataType.simpleString()}"
        )
    return column
