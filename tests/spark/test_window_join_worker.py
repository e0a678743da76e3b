"""Window joins in shards, as the workers run them, against a join in one piece; without Spark."""

from __future__ import annotations

import pytest
from spark import quotes

from vedette.spark import packing
from vedette.spark.shipping import pack
from vedette.spark.window_join_worker import make_monitor, note, step

COLUMNS = {"left_time": "ts", "right_time": "ts", "left_id": "id", "right_id": "id"}


class Shards:
    """Monitors on a grid, each given a part of the rows; all are saved and loaded after every micro-batch."""

    def __init__(self, pairs, n_shards, late):
        self.n_shards, self.states = n_shards, {}
        self.plan = {
            "parcel": vars(pack(pairs, None)),
            "options": COLUMNS | {"late": late, "max_state_rows": None},
            "streams": ["left", "right"],
            "time_type": "timestamp",
        }

    def step(self, *sides):
        found = []
        for shard, payloads in self._pack(sides).items():
            monitor = make_monitor(self.plan)
            if shard in self.states:
                base, deltas = self.states[shard]
                monitor.load(base)
                for delta in deltas:
                    monitor.apply_delta(delta)
            for table in step(monitor, packing.read_payloads(payloads), shard, self.plan):
                found += [tuple(row.values()) for row in table.to_pylist()]
            if shard in self.states:
                self.states[shard][1].append(monitor.take_delta())
            else:
                self.states[shard] = monitor.save(), []
        return found

    def _pack(self, sides):
        payloads = {}
        for side, rows in enumerate(sides):
            batches = rows.combine_chunks().to_batches()
            lines, labels = packing.by_grid(self.n_shards, side), packing.label_shards(self.n_shards)
            packed = packing.pack(
                batches, lambda batch: batch, lambda batch: note(batch, {"time": "ts"}), lines, labels, side, 0
            )
            for batch in packed:
                for shard, *payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    payloads.setdefault(shard, []).append(tuple(payload))
        return payloads


@pytest.mark.parametrize("late", ["drop", "apply"])
@pytest.mark.parametrize("n_shards", [1, 2, 6])
def test_shards_find_what_one_piece_finds_also_of_late_rows(late, n_shards):
    n_late = 0
    for seed in range(4):
        pairs = quotes.make_joins(quotes.ANY if seed % 2 else quotes.EQUATED)
        batches = [quotes.cut(quotes.make_rows(60, 2 * seed + k, disorder=15), 5, 2 * seed + k) for k in (0, 1)]
        monitor = pairs.window(**COLUMNS, late=late)
        expected = quotes.step_locally(monitor, *batches)
        shards = Shards(pairs, n_shards, late)

        found = [pair for sides in zip(*batches, strict=True) for pair in shards.step(*sides)]

        assert sorted(found) == expected
        n_late += monitor.n_late
    assert bool(n_late) == (late == "drop")
