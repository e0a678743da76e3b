"""Window joins in shards, as workers run them, compared with a join in one shard; without Spark."""

from __future__ import annotations

import pytest
from spark import quotes

from vedette.spark.shards import packing
from vedette.spark.shipping.query_sets import pack
from vedette.spark.workers.window_join import make_monitor, note, step

COLUMNS = {"left_time": "ts", "right_time": "ts", "left_id": "id", "right_id": "id"}


class Shards:
    """Monitors, each with a part of the rows; all are saved and loaded after every micro-batch.

    Rows go to shards on a grid, or by their symbol, which all queries equate.
    """

    def __init__(self, pairs, n_shards, late, by_symbol=False):
        self.n_shards, self.states, self.by_symbol, self.n_sent = n_shards, {}, by_symbol, 0
        self.plan = {
            "parcel": vars(pack(pairs, None)),
            "options": COLUMNS | {"late": late, "max_state_rows": None},
            "streams": ["left", "right"],
            "time_type": "timestamp",
            "batch_bytes": 1000,
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
            read = packing.read_payloads(payloads)
            self.n_sent += sum(rows.num_rows for side, rows in read.items() if side >= 0)
            for table in step(monitor, read, shard, self.plan):
                found += [tuple(row.values()) for row in table.to_pylist()]
            if shard in self.states:
                self.states[shard][1].append(monitor.take_delta())
            else:
                self.states[shard] = monitor.save(), []
        return found

    def _pack(self, sides):
        payloads = {}
        for side, rows in enumerate(sides):
            columns = sorted(rows.column_names, key=lambda name: name != ("symbol" if self.by_symbol else "id"))
            batches, labels = rows.select(columns).combine_chunks().to_batches(), packing.label_shards(self.n_shards)
            lines = packing.by_key(self.n_shards) if self.by_symbol else packing.by_grid(self.n_shards, side)
            packed = packing.pack(
                batches,
                lambda batch: batch,
                lambda batch: note(batch, {"time": "ts"}),
                lines,
                labels,
                side,
                0,
                self.by_symbol,
            )
            for batch in packed:
                for shard, *payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    payloads.setdefault(shard, []).append(tuple(payload))
        return payloads


@pytest.mark.parametrize("late", ["drop", "apply"])
@pytest.mark.parametrize("n_shards", [1, 2, 6])
def test_shards_find_the_same_pairs_as_one_shard_even_for_late_rows(late, n_shards):
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


@pytest.mark.parametrize("late", ["drop", "apply"])
@pytest.mark.parametrize("n_shards", [1, 5])
def test_rows_without_a_key_are_not_sent_but_advance_their_stream(late, n_shards):
    """Most rows have no key, but their times decide which other rows are late or removed."""
    n_late = 0
    for seed in range(4):
        pairs = quotes.make_joins(quotes.EQUATED)
        rows = [quotes.make_rows(150, 2 * seed + k, disorder=15, nulls=0.7) for k in (0, 1)]
        batches = [quotes.cut(each, 5, seed) for each in rows]
        monitor = pairs.window(**COLUMNS, late=late)
        expected = quotes.step_locally(monitor, *batches)
        shards = Shards(pairs, n_shards, late, by_symbol=True)

        found = [pair for sides in zip(*batches, strict=True) for pair in shards.step(*sides)]

        assert sorted(found) == expected
        assert len(expected) > 5
        assert shards.n_sent == sum(each.num_rows - each["symbol"].null_count for each in rows)
        n_late += monitor.n_late
    assert bool(n_late) == (late == "drop")
