"""A shard's batch as a worker runs it, without Spark: answers in pieces, and workers that take turns."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from spark.test_shard_state import Store, cache  # noqa: F401  a fixture

import vedette as vd
from vedette.spark.shards import packing
from vedette.spark.shards import state as shard_state
from vedette.spark.shards.monitor_cache import MonitorCache
from vedette.spark.shipping.query_sets import pack
from vedette.spark.workers.shard import step_shard

SCHEMA = "k bigint, x double, t bigint"
TIMES = {"left_time": "t", "right_time": "t", "left_id": "k", "right_id": "k"}


def plan_of(operator, queries, answer, **more):
    return {
        "worker": f"vedette.spark.workers.{operator}",
        "parcel": vars(pack(queries, None)) if queries is not None else {"token": ""},
        "facts": {"operator": operator, "shards": 1},
        "options": {},
        "answer": [(f"c{place}", type_) for place, type_ in enumerate(answer)],
        "is_timed": False,
        "batch_bytes": 2000,
        "cache_bytes": 1 << 30,
    } | more


def border():
    alerts = vd.QuerySet(SCHEMA)
    alerts.add_boxes(np.arange(50), {"x": (np.arange(50.0), np.arange(50.0) + 10)})
    answer = ["long", "long", "long", "string", "string"]
    options = {"key": "k", "time": "t"}
    return plan_of("border", alerts, answer, options=options, marks_first=False), alerts.border(**options), 1


def window_join():
    pairs = vd.JoinQuerySet(left=SCHEMA, right=SCHEMA)
    pairs.add("near", "left.x - right.x BETWEEN -1 AND 1", within=3)
    more = {"options": TIMES, "streams": ["left", "right"], "time_type": "bigint"}
    return plan_of("window_join", pairs, ["string", "long", "long"], **more), pairs.window(**TIMES), 2


@pytest.mark.parametrize("make", [border, window_join])
def test_answers_leave_in_pieces_of_bounded_size_from_workers_that_take_turns(make, monkeypatch):
    plan, straight, n_sides = make()
    store, random_, caches = Store(), random.Random(3), [MonitorCache() for _ in range(3)]
    n_pieces = 0
    for batch in range(12):
        tables = [make_rows(batch, seed) for seed in range(n_sides)]
        monkeypatch.setattr(shard_state, "_cache", random_.choice(caches))
        pieces = [
            pa.Table.from_pandas(frame) for frame in step_shard(plan, None, store, store, 0, [to_frame(tables)], 0)
        ]
        assert all(0 < piece.nbytes <= 2 * plan["batch_bytes"] for piece in pieces)
        n_pieces += len(pieces)
        expected = (
            straight.step(*tables, advance=False) if n_sides == 1 else straight.step(left=tables[0], right=tables[1])
        )
        found = [tuple(map(str, row.values())) for piece in pieces for row in piece.to_pylist()]
        assert sorted(found) == sorted(tuple(map(str, row.values())) for row in expected.to_pylist())
    assert n_pieces > 36
    assert shard_state.counts.n_caught_up > 4
    assert shard_state.counts.n_loaded == 2
    assert shard_state.counts.n_rebuilt == 0


def make_rows(batch, seed):
    random_ = np.random.default_rng([batch, seed])
    return pa.table({"k": random_.integers(0, 20, 40), "x": random_.uniform(0, 60, 40), "t": np.full(40, batch)})


def to_frame(tables):
    """The packed rows of each side, for one shard."""
    packed = [
        batch
        for side, rows in enumerate(tables)
        for batch in packing.pack(rows.to_batches(), lambda each: each, lambda each: b"", [[0]], [], side, 0)
    ]
    return pa.Table.from_batches(packed).to_pandas()
