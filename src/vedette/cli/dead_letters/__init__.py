"""`vedette dead-letters`: what could not be delivered or processed."""

from __future__ import annotations

from vedette.cli.command import new_group
from vedette.cli.dead_letters.drop import drop
from vedette.cli.dead_letters.list import list_
from vedette.cli.dead_letters.retry import retry

dead_letters_app = new_group(
    "dead-letters",
    "List, deliver and delete events that could not be delivered, and rows that could not be processed.",
    {"list": list_, "retry": retry, "drop": drop},
)
