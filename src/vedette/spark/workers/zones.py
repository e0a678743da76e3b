"""Moving joins with a set of zones inside Spark's Python workers; see `vedette.spark.workers.shard`.

Zones are not sent as rows. A shard passes the changes of the zones of its line to its join as rows of the static set,
at the time that the join has reached. After a restart, it compares all zones of its line with those of the join.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterable
from typing import Any

import pyarrow as pa

from vedette.operators.moving_join.batch import SETS
from vedette.operators.moving_join.moving_join import MovingJoin
from vedette.operators.moving_join.rows import MovingRows
from vedette.operators.moving_join.zone_monitor import read_changes
from vedette.operators.moving_join.zone_set import ZoneSet
from vedette.spark.shards import packing
from vedette.spark.shipping.query_sets import check_sender
from vedette.spark.workers import moving_join
from vedette.spark.workers.following import open_queries

check_rows, note = moving_join.check_rows, moving_join.note


class ShardJoin(MovingJoin):
    """A moving join, one of whose sets has zones."""

    def __init__(self, zones_in: Any, **options: Any) -> None:
        self.zones_in = zones_in
        super().__init__(**options)


class ZoneShard:
    """The join of one shard, and the set of zones that it follows."""

    def __init__(self, join: MovingJoin, queries: ZoneSet) -> None:
        self.join = join
        self.queries = queries
        self.version: int | None = None  # of the zones in the join; None: not known

    @property
    def state_nbytes(self) -> int:
        return self.join.state_nbytes

    @property
    def n_rebuilt(self) -> int:
        return self.join.n_rebuilt

    def save(self) -> bytes:
        return self.join.save()

    def load(self, blob: bytes) -> None:
        self.join.load(blob)
        self.version = None

    def take_delta(self) -> bytes:
        return self.join.take_delta()

    def apply_delta(self, blob: bytes) -> None:
        self.join.apply_delta(blob)
        self.version = None

    def set_version(self, version: int) -> None:
        """Note the version of the queries when the state was saved. Once time has begun, the join has these zones."""
        if self.join.time is not None:
            self.version = version

    def read_changes(self, side: int, line: int, n_lines: int) -> MovingRows:
        """How the zones of a line changed since the last step, without a time."""
        if self.version == self.queries.version:
            return MovingRows.empty(self.queries.dimensions)
        join = self.join.join
        known = None if join is None else join.sets[side]
        metadata = self.join.columns.of[SETS[side]]
        return read_changes(
            self.queries, self.version, known, lambda ids: packing.lines_of(ids, n_lines) == line, metadata
        )


def make_monitor(plan: dict[str, Any]) -> ZoneShard:
    check_sender(plan["sender"])
    join = ShardJoin(SETS[plan["zones"]["side"]], **plan["options"], late=plan["late"])
    return ZoneShard(join, open_queries(plan["parcel"]).queries)


def step(monitor: ZoneShard, sides: dict[int, pa.Table], shard: int, plan: dict[str, Any]) -> Iterable[pa.Table]:
    """First the zones that changed, at the time that the join has reached, then the rows of moving objects."""
    side, lines = plan["zones"]["side"], plan["zones"]["lines"]
    version, times = monitor.queries.version, moving_join.times_of(sides)
    now = monitor.join.time if monitor.join.time is not None or not len(times) else float(times.min())
    if now is None:
        return
    changes = monitor.read_changes(side, next(n for n, line in enumerate(lines) if shard in line), len(lines))
    rows = moving_join.read_sides(sides, monitor.join, plan["n_dims"])
    if len(changes):
        rows[side] = changes.with_time(now)
    yield from monitor.join.update_each(rows[0], rows[1], times, plan["max_answer_bytes"])
    monitor.version = version


def advance(
    monitor: ZoneShard, time: datetime.datetime, shard: int, plan: dict[str, Any]
) -> Generator[pa.Table, None, bool]:
    """Time passes with the rows, not with the watermark."""
    yield from ()
    return False


def read_counts(monitor: ZoneShard, shard: int, plan: dict[str, Any]) -> dict[str, int]:
    return moving_join.read_counts(monitor.join, shard, plan)
