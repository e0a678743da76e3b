"""Packing rows by shard: every row arrives once, in its order, and a key has one shard for ever."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette as vd
from vedette.spark import packing

names = st.text(max_size=3)
numbers = st.integers(-(2**63), 2**63 - 1)


def batch_of(keys, type_):
    return pa.record_batch([pa.array(keys, type_), pa.array(range(len(keys)), pa.int64())], names=["key", "row"])


@given(st.lists(names, max_size=50) | st.lists(numbers, max_size=50), st.integers(1, 7))
def test_every_row_is_in_one_shard_in_its_order_beside_all_others_of_its_key(keys, n_shards):
    batch = batch_of(keys, pa.int64() if keys and isinstance(keys[0], int) else pa.string())

    shards = dict(packing.split(batch, n_shards))

    rows = [row for shard in shards.values() for row in shard.column("row").to_pylist()]
    assert sorted(rows) == list(range(len(keys)))
    for shard in shards.values():
        got = shard.column("row").to_pylist()
        assert got == sorted(got)
        assert shard.column("key").to_pylist() == [keys[row] for row in got]
    homes = {key: shard for shard, part in shards.items() for key in part.column("key").to_pylist()}
    assert all(set(part.column("key").to_pylist()) <= {k for k in homes if homes[k] == s} for s, part in shards.items())


def test_a_key_keeps_its_shard_from_version_to_version():
    """Checkpoints hold keys by these numbers."""
    words = pa.array(["", "IBM", "SAP", "Zürich", "a" * 100], pa.large_string())
    offsets, data = packing.string_buffers(words)
    assert packing.shards_of_strings(offsets, data, 1000).tolist() == [342, 863, 819, 776, 768]
    integers = pa.array([0, 1, -1, 2**62]).to_numpy()
    assert packing.shards_of_numbers(packing.writable(integers), 1000).tolist() == [0, 604, 289, 72]
    assert packing.label_shards(4) == [0, 2, 6, 12]


@given(st.integers(-(2**31), 2**31 - 1))
def test_the_hash_of_numbers_is_finite_and_signed(value):
    assert -(2**31) <= packing.spark_hash(value) < 2**31


@pytest.mark.parametrize("n_shards", [1, 2, 3, 8, 200])
def test_labels_put_each_shard_into_a_partition_of_its_own(spark, n_shards):
    labels = packing.label_shards(n_shards)
    found = spark.createDataFrame([(label,) for label in labels], "label int").selectExpr(
        f"pmod(hash(label), {n_shards})"
    )

    assert sorted(row[0] for row in found.collect()) == list(range(n_shards))


def test_payloads_come_back_in_the_order_of_partition_and_number():
    batches = [batch_of(keys, pa.string()) for keys in (["a", "b"], ["b", "c"], ["d"])]
    packed = [(1, 0, batches[2]), (0, 1, batches[1]), (0, 0, batches[0])]
    payloads = [(p, n, packing.to_payload(rows)) for p, n, batch in packed for _, rows in packing.split(batch, 1)]

    assert packing.read_payloads(payloads).column("key").to_pylist() == ["a", "b", "b", "c", "d"]
    assert packing.read_payloads([(0, 0, b"")]) is None


def test_small_batches_are_put_together(monkeypatch):
    batches = [batch_of(["k"] * n, pa.string()) for n in (3, 0, 4, 5, 1, 2, 12, 1)]
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 6)

    packed = list(packing.pack(batches, [0], 0, "error"))

    rows = [packing.read_payloads([(0, 0, each.column("payload")[0].as_py())]) for each in packed]
    assert [each.num_rows for each in rows] == [7, 6, 14, 1]
    assert [each.column("number").to_pylist() for each in packed] == [[0], [1], [2], [3]]
    assert list(packing.pack([batch_of([], pa.string())] * 2, [0], 0, "error")) == []


def test_the_first_shard_hears_of_every_batch(monkeypatch):
    monkeypatch.setattr(packing, "ROWS_AT_ONCE", 1)
    batches = [batch_of([key], pa.string()) for key in "abcdefgh"]
    packed = list(packing.pack(batches, packing.label_shards(4), 7, "error"))

    assert len(packed) == 8
    assert all(packing.label_shards(4)[0] in each.column("shard").to_pylist() for each in packed)
    assert {part for each in packed for part in each.column("part").to_pylist()} == {7}


def test_null_keys_are_told_or_dropped():
    batch = batch_of(["a", None, None], pa.string())

    with pytest.raises(vd.RowError, match=r"the key, column 'key', is null in 2 rows; filter .*null_key=\"drop\""):
        list(packing.pack([batch], [0], 0, "error"))
    (packed,) = packing.pack([batch], [0], 0, "drop")
    rows = packing.read_payloads([(0, 0, packed.column("payload")[0].as_py())])
    assert rows.column("key").to_pylist() == ["a"]


def test_a_row_without_a_time_is_told():
    batch = pa.record_batch([pa.array(["a", "b"]), pa.array([None, 1])], names=["key", "at"])

    with pytest.raises(vd.RowError, match="the time, column 'at', is null in 1 row; filter such rows out"):
        list(packing.pack([batch], [0], 0, "drop"))
