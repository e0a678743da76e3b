"""Dead letters: events that could not be delivered, and rows that could not be processed, each with the reason.

They are in a folder of Parquet files, or in the database of a registry. A task of a stream writes its letters under the
name of its micro-batch, so a repeated micro-batch replaces them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from vedette.errors import PipelineError, shown

EVENT, ROW = KINDS = ("event", "row")
_DATABASES = ("sqlite", "postgresql")


@dataclass(frozen=True)
class Letter:
    """One dead letter. `id` is that of the event; a row's is made from its micro-batch and place."""

    id: str
    kind: str  # one of KINDS
    source: str  # the pipeline and sink, or the name that the program gave
    body: str  # the event or row as JSON
    reason: str
    failed_at: datetime
    url: str | None = None
    group: str | None = None
    status: int | None = None  # of the last response
    attempts: int = 0
    stream: str = ""
    batch: int | None = None


@dataclass(frozen=True, repr=False)
class LetterPlace:
    """Where letters are written, and under which source. The address may contain a password."""

    address: str
    source: str

    @classmethod
    def read(cls, place: Any, source: str) -> LetterPlace:
        """A place as a user gives it, with a default for its source."""
        return place if isinstance(place, LetterPlace) else cls(address_of(place), source)


@dataclass(frozen=True)
class Part:
    """What letters are written together: those of one task of a micro-batch."""

    stream: str
    batch: int | None
    task: str


class DeadLetters(Protocol):
    """A table of dead letters. Its str has no secrets."""

    def write(self, part: Part, letters: Sequence[Letter]) -> None:
        """Write the letters of a part, or replace them."""

    def read(self) -> Iterator[Letter]:
        """All letters."""

    def remove(self, letters: Iterable[Letter]) -> int:
        """Delete letters, by source and id; returns how many there were."""

    def update(self, letters: Iterable[Letter]) -> None:
        """Replace letters, by source and id, that failed again."""


def open_letters(place: Any) -> DeadLetters:
    """The dead letters at a place: a folder, the address of an object store, or the address of a registry."""
    from vedette.delivery.database_letters import DatabaseLetters
    from vedette.delivery.parquet_letters import ParquetLetters

    text = address_of(place)
    return DatabaseLetters(text) if _is_database(text) else ParquetLetters(text)


def address_of(place: Any) -> str:
    """The place as a text for processes in other directories. It may contain a password."""
    if hasattr(place, "database"):  # a registry; its package takes long to import
        return str(place.database.address)
    if isinstance(place, (str, os.PathLike)) and os.fspath(place):
        text = os.fspath(place)
        if _is_database(text):
            from vedette.registry.store.database import Database

            return Database(text).address
        return text if "://" in text else os.path.abspath(text)
    raise PipelineError(
        f"must be a folder, the address of an object store, or a registry; got {shown(place)}", option="dead_letters"
    )


def _is_database(text: str) -> bool:
    return text.partition(":")[0].partition("+")[0] in _DATABASES
