"""States of shards, divided and joined without Spark: answers go on as if the number of shards had never changed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from spark import bands, fleets, quotes, ticks

import vedette as vd
from vedette.spark.shards import packing
from vedette.spark.shards.layout import Layout, stored_state
from vedette.spark.shards.state import FORMAT
from vedette.spark.shards.stored_shard import HEAD, StoredShard, read_head
from vedette.spark.workers import band_join, moving_join, stored_shards

COUNTS = [(3, 8), *(pytest.param(each, marks=pytest.mark.full) for each in [(1, 4), (4, 1), (16, 6), (6, 16)])]


@dataclass
class Shards:
    """The monitors of a stream's shards, and what each has saved after every micro-batch."""

    facts: dict[str, Any]
    make: Any
    step: Any  # the answers of a monitor to the rows of each side, and to the rows of all shards
    monitors: dict[int, Any] = field(default_factory=dict)
    saved: dict[int, list[bytes]] = field(default_factory=dict)

    def __post_init__(self):
        self.layout = Layout.of(self.facts)

    def run(self, *sides):
        """The answers to a micro-batch with these rows of each side; None for none."""
        sent = {}
        for place, rows in enumerate(sides):
            if rows is None or not rows.num_rows:
                continue
            n = self.facts["shards"]
            lines = packing.by_grid(n, place) if self.layout.is_grid else packing.by_key(n)
            for line, part in packing.split(rows.combine_chunks().to_batches()[0], len(lines)):
                for label in lines[line]:
                    sent.setdefault(label, {})[place] = pa.Table.from_batches([part])
        answers = []
        for label in self.layout.labels:
            if self.facts["operator"] == "border monitor" and label not in sent and label not in self.monitors:
                continue  # it has no state yet; other operators tell all shards about all rows
            monitor = self.monitors.setdefault(label, self.make())
            answers += self.step(monitor, sent.get(label, {}), sides, label)
            blobs = self.saved.setdefault(label, [])
            blobs.append(monitor.take_delta() if blobs else monitor.save())
        return answers

    def reshard(self, n_shards):
        """The same stream with another number of shards, loaded from what was saved."""
        plan = {
            "sender": vd.__version__,
            "first": min(self.saved),
            "shards": n_shards,
            "facts": self.facts | {"shards": n_shards},
            "kind": "k",
            "version": None,
        }
        shares = list(stored_shards.divide_shards(plan, iter([to_batch(self.pieces())])))
        rows = sorted(tuple(column[0].as_py() for column in share.columns) for share in shares)
        shares = [pa.RecordBatch.from_pylist([dict(zip(("t", "s", "p", "c"), row, strict=True))]) for row in rows]
        made = {}
        for batch in stored_shards.join_shares(plan, iter(shares)):
            shard, entry, piece, content = (column[0].as_py() for column in batch.columns)
            made.setdefault(shard, {})[entry, piece] = content
        other = Shards(plan["facts"], self.make, self.step)
        for label, pieces in made.items():
            other.monitors[label] = self.make()
            other.monitors[label].load(pieces[0, 0])
            other.saved[label] = [pieces[0, 0]]
        return other

    def pieces(self):
        rows = []
        for label, blobs in sorted(self.saved.items()):
            entries = [["t", 1, len(blob)] for blob in blobs]
            head = {"facts": self.facts, "kind": "k", "first": 5, "entries": entries}
            rows.append((label, HEAD, HEAD, json.dumps(head).encode()))
            rows += [(label, 5 + number, 0, blob) for number, blob in enumerate(blobs)]
        return rows

    def count(self):
        """The rows of all shards, by part."""
        found = {}
        for label, blobs in self.saved.items():
            for part, n in stored_state(self.facts).count_rows(stored_state(self.facts).read(blobs)).items():
                found.setdefault(part, {})[label] = n
        return found


def to_batch(rows):
    names = ("shard", "entry", "piece", "content")
    return pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows])


def facts_of(operator, n_shards, **more):
    return {"format": FORMAT, "operator": operator, "shards": n_shards, **more}


def compare(make, batches, counts, operator, step, **more):
    """Run micro-batches in one shard, and in shards whose number changes before each of some micro-batches."""
    n_before, n_after = counts
    whole = Shards(facts_of(operator, 1, **more), make, step)
    shards = Shards(facts_of(operator, n_before, **more), make, step)
    total = 0
    for number, sides in enumerate(batches):
        if number == len(batches) // 3:
            shards = shards.reshard(n_after)
        if number == 2 * len(batches) // 3:
            shards = shards.reshard(n_before)
        expected = sorted(whole.run(*sides), key=repr)
        assert sorted(shards.run(*sides), key=repr) == expected, number
        total += len(expected)
    assert total > 20
    return whole, shards


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("options", [{}, {"dwell": "20 seconds", "margin": 0.5, "expire_after": "40 seconds"}], ids=str)
@pytest.mark.parametrize("keys", ["string", "integer"])
def test_border_monitors_continue_in_another_number_of_shards(counts, options, keys):
    queries = ticks.make_queries()
    rows = ticks.make_rows(600)
    if keys == "integer":
        queries = vd.QuerySet(ticks.SCHEMA.replace("symbol string", "symbol bigint"))
        queries.add_boxes(np.arange(40), {"price": (np.arange(40.0), np.arange(40.0) + 5)})
        rows = rows.set_column(0, "symbol", pa.array([int(each[1:]) for each in rows["symbol"].to_pylist()]))
    batches = [(rows.slice(start, 60),) for start in range(0, 600, 60)]

    def step(monitor, sides, everything, label):
        tables = [monitor.step(rows, advance=False) for rows in sides.values()]
        if options:  # all shards see that time passes, as with timers
            tables.append(monitor.advance(everything[0]["ts"][-1].as_py()))
        return [tuple(row.values()) for table in tables for row in table.to_pylist()]

    def make():
        return queries.border(key="symbol", time="ts", **options)

    whole, shards = compare(make, batches, counts, "border monitor", step)

    assert sum(shards.count()["keys"].values()) == sum(whole.count()["keys"].values()) > 0


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize(
    ("queries", "layout", "on"),
    [(quotes.EQUATED, "equality", "left.symbol = right.symbol"), (quotes.ANY, "grid", "")],
    ids=["equality", "grid"],
)
def test_window_joins_continue_in_another_number_of_shards(counts, queries, layout, on):
    pairs = quotes.make_joins(queries)
    sides = [quotes.make_rows(240, seed, nulls=0.0) for seed in (1, 2)]
    order = ["symbol", "id", "price", "ts"] if layout == "equality" else ["id", "symbol", "price", "ts"]
    batches = [tuple(side.select(order).slice(start, 20) for side in sides) for start in range(0, 240, 20)]

    def step(monitor, given, everything, label):
        names = ("left", "right")
        answers = monitor.step(**{names[place]: rows for place, rows in given.items()}).to_pylist() if given else []
        latest = {name: rows["ts"][-1].as_py() for name, rows in zip(names, everything, strict=True)}
        monitor.advance(**latest)
        return [tuple(row.values()) for row in answers]

    def make():
        monitor = pairs.window(left_time="ts", right_time="ts", left_id="id", right_id="id")
        monitor.set_time_type("timestamp")
        return monitor

    compare(make, batches, counts, "window join", step, layout=layout, on=on)


@pytest.mark.parametrize("counts", COUNTS, ids=str)
def test_band_joins_continue_in_another_number_of_shards(counts):
    queries = bands.make_bands()
    lefts, rights = bands.make_batches(9, 12, seed=1), bands.make_batches(9, 15, seed=2)
    batches = [
        tuple(to_values(rows, side) for side, rows in enumerate(pair)) for pair in zip(lefts, rights, strict=True)
    ]

    def step(monitor, sides, everything, label):
        left, right = (band_join._to_rows(sides[side], side, monitor) if side in sides else None for side in range(2))
        tables = monitor.step_read(left, right, max_bytes=1 << 20, sides_reported=[])
        return [tuple(row.values()) for table in tables for row in table.to_pylist()]

    whole, shards = compare(queries.monitor, batches, counts, "band join", step)

    n_rows, n_columns = packing.grid_of(counts[0])
    for part, n_copies in (("left", n_columns), ("right", n_rows)):
        assert sum(shards.count()[part].values()) == n_copies * sum(whole.count()[part].values()) > 0


def to_values(rows, side):
    (batch,) = bands.to_table(rows).to_batches()
    return pa.Table.from_batches([band_join.check_rows(batch, {"side": side})])


@pytest.mark.parametrize("counts", COUNTS, ids=str)
@pytest.mark.parametrize("options", [{}, {"expire_overdue": True}, {"static": "b"}], ids=str)
def test_moving_joins_continue_in_another_number_of_shards(counts, options):
    sets = [fleets.make_rows(15, 6, seed, n_ids=14) for seed in (1, 2)]
    batches = [tuple(map(to_motions, pair)) for pair in zip(*(fleets.cut(rows, 9) for rows in sets), strict=True)]

    def step(monitor, sides, everything, label):
        a, b = moving_join.read_sides(sides, monitor, 2)
        times = np.concatenate([rows["time"].to_numpy() for rows in everything])
        return [
            line for table in monitor.update_each(a, b, times, 1 << 30) for line in fleets.as_lines(table.to_pylist())
        ]

    compare(lambda: vd.MovingJoin(fleets.INTERVAL, **options), batches, counts, "moving join", step)


def to_motions(rows):
    table = fleets.to_table(rows)
    names = table.schema.names
    plan = {"side": 0, "names": names, "n_dims": 2, "is_static": False}
    (batch,) = table.combine_chunks().to_batches()
    return pa.Table.from_batches([moving_join.check_rows(batch, plan)])


def test_a_shard_with_a_missing_piece_is_refused():
    shards = Shards(facts_of("band join", 2), bands.make_bands().monitor, lambda *_: [])
    shards.run(to_values(bands.make_batches(1, 5, seed=1)[0], 0), None)
    label, *_ = shards.saved
    pieces = {(entry, piece): content for shard, entry, piece, content in shards.pieces() if shard == label}
    del pieces[5, 0]

    with pytest.raises(vd.SnapshotError, match=f"a part of the state of shard {label} is missing"):
        StoredShard.read(label, pieces).content()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not written by vedette, or is damaged"),
        ("[]", "not written by vedette, or is damaged"),
        ('{"facts": {"format": 77}}', f"has format 77 but this version of vedette reads format {FORMAT}"),
    ],
)
def test_a_head_that_is_damaged_or_of_another_format_is_refused(text, message):
    with pytest.raises(vd.SnapshotError, match=message):
        read_head(text)


def test_a_damaged_state_is_refused_in_one_sentence():
    state = stored_state(facts_of("band join", 2))
    blob = bands.make_bands().monitor().save()

    with pytest.raises(vd.SnapshotError, match="the saved band join state is damaged"):
        state.read([blob[:-3] + b"xyz"])
    with pytest.raises(vd.SnapshotError, match="not a saved border state but a band join state"):
        stored_state(facts_of("border monitor", 2)).read([blob])


def test_an_unknown_operator_is_refused():
    with pytest.raises(vd.SnapshotError, match="is of a 'sum', which this version of vedette does not know"):
        stored_state(facts_of("sum", 2))


@pytest.mark.parametrize("n_shards", [1, 2, 7, 16, 100])
@pytest.mark.parametrize("is_grid", [False, True])
def test_each_row_of_a_part_has_one_owner(n_shards, is_grid):
    layout = Layout(n_shards, is_grid)

    for place in range(2):
        owners = [label for label in layout.labels if layout.is_owner(label, place)]
        assert len(owners) == layout.n_lines(place)
        assert sorted(layout.line_of(label, place) for label in owners) == list(range(layout.n_lines(place)))
