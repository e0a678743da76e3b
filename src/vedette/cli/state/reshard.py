"""`vedette state reshard`."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.options import QuietOption
from vedette.cli.state.options import CheckpointArgument


def reshard(
    checkpoint: CheckpointArgument,
    shards: Annotated[int, typer.Option("--shards", metavar="N", help="The new number of shards")],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FOLDER", help="The new checkpoint, a folder that does not exist")
    ],
    quiet: QuietOption = False,
) -> str:
    """Write a checkpoint with another number of shards. The old checkpoint is not changed.

    Stop the stream first. Then start it with the new checkpoint: it continues where it stopped, and no answer is lost
    or duplicated.
    """
    from vedette.spark.checkpoints.reshard import reshard as write
    from vedette.spark.session import session, state_settings

    spark = session("vedette state reshard", log_level="OFF", **state_settings())
    done = write(spark, checkpoint, output, shards)
    return f"{done.n_before} shards became {done.n_after} after micro-batch {done.batch}, written to {output}"
