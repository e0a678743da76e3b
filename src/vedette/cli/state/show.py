"""`vedette state show`."""

from __future__ import annotations

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.state.options import CheckpointArgument
from vedette.errors import count

_COLUMNS = ("shard", "partition", "keys", "rows", "version", "entries", "bytes", "skew")


@with_groups
def show(*, checkpoint: CheckpointArgument, answer: Answer) -> str:
    """Print the shards of a stream's state: keys, rows, the version of the queries, bytes and skew.

    The skew of a shard is the number of its rows, divided by the mean of all shards. The state is that after the last
    finished micro-batch; the stream may run meanwhile.
    """
    from vedette.spark.checkpoints.description import describe

    found = describe(checkpoint)
    if answer.form == "json":
        print_record(found.to_record(), answer.form)
    else:
        print_records(found.shards, _COLUMNS, answer.form)
    return (
        f"{found.operator} with {count(found.n_shards, 'shard')}, {len(found.shards):,} with state, in "
        f"{count(found.n_partitions, 'partition')}, after micro-batch {found.batch}: {count(found.n_rows, 'row')}, "
        f"{found.n_bytes:,} bytes, largest skew {found.skew:.2f}"
    )
