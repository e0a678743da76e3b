"""`vedette registry unpin`."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import count


@with_groups
def unpin(
    *,
    stream: Annotated[
        str,
        typer.Argument(metavar="STREAM", help="The stream's id, as in `vedette registry pins`", show_default=False),
    ],
    from_batch: Annotated[
        int | None,
        typer.Option("--from-batch", metavar="N", help="Only batch N and those after it", show_default="all batches"),
    ] = None,
    set_name: Annotated[
        str | None, typer.Option("--set", metavar="NAME", help="Only pins of this set", show_default="all sets")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be deleted, and delete nothing")] = False,
    registry: RegistryOption = None,
    answer: Answer,
) -> str:
    """Delete the pins of a stream, which must not run: batches that are repeated use the current version.

    Use it for a checkpoint that was restored or copied, and for a stream that will not start again.
    """
    opened = open_registry(registry)
    n_pins = opened.unpin(stream, from_batch=from_batch, name=set_name, dry_run=dry_run)
    print_record({"stream": stream, "would_delete" if dry_run else "deleted": n_pins}, answer.form)
    return f"{'would delete' if dry_run else 'deleted'} {count(n_pins, 'pin')}"
