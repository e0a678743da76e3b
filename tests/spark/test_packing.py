"""Packing rows for shards: every row arrives once, in order, and the shard of a key never changes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.spark.shards import packing

names = st.text(max_size=3)
numbers = st.integers(-(2**63), 2**63 - 1)


def batch_of(keys, type_):
    return pa.record_batch([pa.array(keys, type_), pa.array(range(len(keys)), pa.int64())], names=["key", "row"])


def as_read(packed):
    """The rows of packed batches by shard, as the shards read them."""
    payloads = {}
    for batch in packed:
        for shard, *payload in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            payloads.setdefault(shard, []).append(tuple(payload))
    return {shard: packing.read_payloads(each) for shard, each in payloads.items()}


def same(batch):
    return batch


def nothing(batch):
    return b""


@given(st.lists(names, max_size=50) | st.lists(numbers, max_size=50), st.integers(1, 7))
def test_every_row_is_in_one_line_in_order_with_all_others_of_its_key(keys, n_lines):
    batch = batch_of(keys, pa.int64() if keys and isinstance(keys[0], int) else pa.string())

    lines = dict(packing.split(batch, n_lines))

    rows = [row for line in lines.values() for row in line.column("row").to_pylist()]
    assert sorted(rows) == list(range(len(keys)))
    for line in lines.values():
        got = line.column("row").to_pylist()
        assert got == sorted(got)
        assert line.column("key").to_pylist() == [keys[row] for row in got]
    homes = {key: line for line, part in lines.items() for key in part.column("key").to_pylist()}
    assert all(set(part.column("key").to_pylist()) <= {k for k in homes if homes[k] == s} for s, part in lines.items())


@given(st.lists(names, max_size=20), st.lists(numbers, max_size=20), st.integers(1, 13))
def test_on_a_grid_every_pair_meets_in_exactly_one_shard(lefts, rights, n_shards):
    packed = []
    for side, (keys, type_) in enumerate([(lefts, pa.string()), (rights, pa.int64())]):
        packed += packing.pack([batch_of(keys, type_)], same, nothing, packing.by_grid(n_shards, side), [], side, 0)
    shards = as_read(packed)

    assert set(shards) <= set(packing.label_shards(n_shards))
    met = [
        (left, right)
        for sides in shards.values()
        if len(sides) == 2
        for left in sides[0].column("row").to_pylist()
        for right in sides[1].column("row").to_pylist()
    ]
    assert sorted(met) == [(left, right) for left in range(len(lefts)) for right in range(len(rights))]


@pytest.mark.parametrize(
    ("n_shards", "grid"),
    [(1, (1, 1)), (2, (1, 2)), (3, (1, 3)), (4, (2, 2)), (7, (2, 3)), (8, (2, 4)), (12, (3, 4)), (200, (14, 14))],
)
def test_a_grid_is_as_square_as_possible(n_shards, grid):
    assert packing.grid_of(n_shards) == grid
    assert [len(packing.by_grid(n_shards, side)) for side in (0, 1)] == list(grid)


def test_the_shard_of_a_row_never_changes():
    """Checkpoints store rows by these numbers."""
    words = pa.array(["", "IBM", "SAP", "Zürich", "a" * 100], pa.large_string())
    offsets, data = packing.string_buffers(words)
    assert packing.lines_of_strings(offsets, data, 1000).tolist() == [342, 863, 819, 776, 768]
    integers = pa.array([0, 1, -1, 2**62]).to_numpy()
    assert packing.lines_of_numbers(packing.writable(integers), 1000).tolist() == [0, 604, 289, 72]
    assert packing.label_shards(4) == [0, 2, 6, 12]
    assert packing.by_key(4) == [[0], [2], [6], [12]]
    assert packing.by_grid(4, 0) == [[0, 2], [6, 12]]
    assert packing.by_grid(4, 1) == [[0, 6], [2, 12]]


@given(st.integers(-(2**31), 2**31 - 1))
def test_the_hash_of_numbers_is_finite_and_signed(value):
    assert -(2**31) <= packing.spark_hash(value) < 2**31


@pytest.mark.parametrize("n_shards", [1, 2, 3, 8, 200])
def test_labels_put_each_shard_into_its_own_partition(spark, n_shards):
    labels = packing.label_shards(n_shards)
    found = spark.createDataFrame([(label,) for label in labels], "label int").selectExpr(
        f"pmod(hash(label), {n_shards})"
    )

    assert sorted(row[0] for row in found.collect()) == list(range(n_shards))


def test_payloads_come_back_by_side_in_the_order_of_partition_and_number():
    batches = [batch_of(keys, pa.string()) for keys in (["a", "b"], ["b", "c"], ["d"], ["e"])]
    packed = [(0, 1, 0, batches[2]), (0, 0, 1, batches[1]), (1, 0, 0, batches[3]), (0, 0, 0, batches[0])]

    sides = packing.read_payloads([(*numbers, packing.to_payload(batch)) for *numbers, batch in packed])

    assert {side: rows.column("key").to_pylist() for side, rows in sides.items()} == {
        0: ["a", "b", "b", "c", "d"],
        1: ["e"],
    }
    assert packing.read_payloads([(0, 0, 0, b"")]) == {}


def test_small_batches_are_joined(monkeypatch):
    batches = [batch_of(["k"] * n, pa.string()) for n in (3, 0, 4, 5, 1, 2, 12, 1)]
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 6)

    packed = list(packing.pack(batches, same, nothing, [[0]], [], 0, 0))

    assert [as_read([each])[0][0].num_rows for each in packed] == [7, 6, 14, 1]
    assert [each.column("number").to_pylist() for each in packed] == [[0], [1], [2], [3]]
    assert list(packing.pack([batch_of([], pa.string())] * 2, same, nothing, [[0]], [0], 0, 0)) == []


def test_shards_are_notified_of_every_partition_with_rows(monkeypatch):
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 1)
    labels = packing.label_shards(9)
    for side in (0, 1):
        batches = [batch_of([key], pa.string()) for key in "ab"]
        packed = list(packing.pack(batches, same, nothing, packing.by_grid(9, side), labels, side, 7))

        notified = [shard for each in packed for shard in each.column("shard").to_pylist()]
        assert set(notified) == set(labels)
        assert len(notified) == 3 + 9 + 3  # the row, its note, the other row
        assert {part for each in packed for part in each.column("part").to_pylist()} == {7}
        assert {name for each in packed for name in each.column("side").to_pylist()} == {side, packing.note_of(side)}


def test_notes_reach_all_shards(monkeypatch):
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 1)
    labels = packing.label_shards(4)
    batches = [batch_of([key], pa.string()) for key in "ab"]

    packed = list(packing.pack(batches, same, packing.to_payload, packing.by_key(4), labels, 1, 0))

    shards = as_read(packed)
    assert set(shards) == set(labels)
    assert all(sides[packing.note_of(1)].column("key").to_pylist() == ["a", "b"] for sides in shards.values())
    assert sorted(key for sides in shards.values() if 1 in sides for key in sides[1].column("key").to_pylist()) == [
        "a",
        "b",
    ]


@given(st.lists(st.none() | st.dates(), min_size=1), st.integers(2, 5))
def test_equal_values_of_any_type_are_in_one_line(days, n_lines):
    for type_ in (pa.date32(), pa.timestamp("us", "UTC"), pa.string()):
        keys = pa.array(days, pa.date32()).cast(type_)
        batch = pa.record_batch([keys, pa.array(range(len(days)))], names=["key", "row"])

        homes = {}
        for line, rows in packing.split(batch, n_lines):
            for key in rows.column("key").to_pylist():
                homes.setdefault(key, set()).add(line)

        assert set(homes) == set(keys.to_pylist())
        assert all(len(lines) == 1 for lines in homes.values())
