"""`vedette dead-letters list`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from vedette.cli.dead_letters.options import Choice
from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_records
from vedette.errors import count

_COLUMNS = ("id", "kind", "source", "group", "status", "attempts", "failed_at", "reason")


@with_groups
def list_(
    *,
    choice: Choice,
    limit: Annotated[int, typer.Option(metavar="NUMBER", help="List at most this many", min=1)] = 100,
    answer: Answer,
) -> str:
    """List dead letters with their reasons, the oldest first. With --json, also what they contain."""
    letters = [letter for found in choice.find() for letter in found.letters]
    letters.sort(key=lambda letter: (letter.failed_at, letter.id))
    print_records([asdict(letter) for letter in letters[:limit]], _COLUMNS, answer.form)
    shown = f"{limit:,} of " if len(letters) > limit else ""
    return f"{shown}{count(len(letters), 'dead letter')}"
