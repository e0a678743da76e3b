"""`vedette dead-letters drop`."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.dead_letters.options import Choice
from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record
from vedette.errors import PipelineError, count


@with_groups
def drop(
    *,
    choice: Choice,
    everything: Annotated[bool, typer.Option("--all", help="Delete all letters of this place")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be deleted, and delete nothing")] = False,
    answer: Answer,
) -> str:
    """Delete dead letters: those that the options choose, or all of them."""
    if everything == choice.is_limited:
        raise PipelineError("choose letters with --id, --source, --group or --kind, or all of them with --all")
    n_letters = sum(len(found.letters) if dry_run else found.place.remove(found.letters) for found in choice.find())
    print_record({"would_delete" if dry_run else "deleted": n_letters}, answer.form)
    return f"{'would delete' if dry_run else 'deleted'} {count(n_letters, 'dead letter')}"
