"""The shards of a checkpoint inside Spark's Python workers: described, divided for other shards, and joined again.

Rows are pieces of shards, sorted by shard: `shard int, entry long, piece int, content binary`. The head of a shard is
the entry HEAD. A worker holds one shard at a time, and what it is divided into.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from vedette.spark.shards.layout import Division, Layout, stored_state
from vedette.spark.shards.stored_shard import StoredShard, write_shard
from vedette.spark.shipping.query_sets import check_sender

PIECES = "shard int, entry long, piece int, content binary"
# Divided shards: the new shard, the old one, and numbered pieces of a state.
SHARES = "target int, source int, piece int, content binary"
DESCRIPTION = "shard int, partition int, keys long, rows long, version long, entries int, bytes long"
_SHARE_BYTES = 32 << 20  # of one row


def describe_shards(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row per shard, in the columns of DESCRIPTION. The rows have the partition as a fifth column."""
    check_sender(plan["sender"])
    for label, rows in itertools.groupby(_rows(batches), key=lambda row: row[0]):
        found = list(rows)
        shard = StoredShard.read(label, {(entry, piece): content for _, entry, piece, content, _ in found})
        if shard is None:
            continue
        state, content = stored_state(shard.facts), shard.content()
        n_rows = state.count_rows(content)
        versions = shard.head.get("versions")
        described = {
            "shard": pa.array([label], pa.int32()),
            "partition": pa.array([found[0][4]], pa.int32()),
            "keys": pa.array([n_rows.get("keys")], pa.int64()),
            "rows": pa.array([sum(n_rows.values())], pa.int64()),
            "version": pa.array([state.version(content) if versions is None else versions[1]], pa.int64()),
            "entries": pa.array([shard.n_entries], pa.int32()),
            "bytes": pa.array([shard.n_bytes], pa.int64()),
        }
        yield pa.RecordBatch.from_pydict(described)


def divide_shards(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of each shard as states for the shards of another layout, in the columns of SHARES.

    A shard that gets no rows still gets what all shards know: the first of the old ones sends it to all.
    """
    check_sender(plan["sender"])
    for label, rows in itertools.groupby(_rows(batches), key=lambda row: row[0]):
        shard = StoredShard.read(label, {(entry, piece): content for _, entry, piece, content in rows})
        if shard is None:
            continue
        state, content = stored_state(shard.facts), shard.content()
        old, new = Layout.of(shard.facts), Layout.of(shard.facts, plan["shards"])
        division = Division(label, list(content["parts"]), old, new)
        for number, target in enumerate(new.labels):
            blob, n_rows = state.divide(content, partial(division.choose, target), with_counts=number == 0)
            if n_rows or number == 0 or label == plan["first"]:
                for piece, start in enumerate(range(0, len(blob), _SHARE_BYTES)):
                    yield _to_batch(SHARES, [target, label, piece, blob[start : start + _SHARE_BYTES]])


def join_shares(plan: dict[str, Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The pieces of new shards, from the shares of each, sorted by target, source and piece."""
    check_sender(plan["sender"])
    state = stored_state(plan["facts"])
    for target, rows in itertools.groupby(_rows(batches), key=lambda row: row[0]):
        shares = [b"".join(row[3] for row in pieces) for _, pieces in itertools.groupby(rows, key=lambda row: row[1])]
        blob, version = state.join(shares)
        version = plan["version"] if version is None or plan["version"] is None else version
        for (entry, piece), content in write_shard(blob, plan["facts"], plan["kind"], version).items():
            yield _to_batch(PIECES, [target, entry, piece, content])


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        for place in range(batch.num_rows):  # one by one: contents are large
            yield tuple(column[place].as_py() for column in batch.columns)


def _to_batch(columns: str, row: list[Any]) -> pa.RecordBatch:
    names = [column.split()[0] for column in columns.split(", ")]
    types = {"target": pa.int32(), "source": pa.int32(), "shard": pa.int32(), "entry": pa.int64(), "piece": pa.int32()}
    arrays = [pa.array([value], types.get(name, pa.binary())) for name, value in zip(names, row, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def seed_shard(head: Any, pieces: Any, handle: Any, frames: Iterable[Any], timer_ms: int | None) -> None:
    """Replace the state of a shard by pieces; without pieces it has no state afterwards."""
    head.clear()
    pieces.clear()
    has_state = False
    for frame in frames:
        for entry, piece, content in zip(frame["entry"], frame["piece"], frame["content"], strict=True):
            if content is None:
                continue  # a shard that exists only before
            if entry < 0:
                head.update((bytes(content).decode(),))
                has_state = True
            else:
                pieces.updateValue((int(entry), int(piece)), (bytes(content),))
    if timer_ms is None:
        return
    for timer in list(handle.listTimers()):
        handle.deleteTimer(timer)
    if has_state:
        handle.registerTimer(timer_ms)
