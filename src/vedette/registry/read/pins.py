"""Pins: the version of a set that each batch of a stream is evaluated against. `pinning` writes them.

Spark repeats a batch that it has not committed, so a pin must outlive the process. The pins of the last batches of a
stream are kept. If a stream is silent for long, only its newest pin is kept, and the version of that pin is not
forgotten until the pin is deleted.

A SQL query that is not a stream also has pins, so that all its tasks see one version. They are kept for a day.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select

from vedette.registry.store.tables import pins, sets
from vedette.registry.store.times import as_datetime

KEPT_BATCHES = 1000
KEPT_DAYS = 7
SQL = "sql:"  # the first characters of a stream whose batches are SQL queries; it never continues after a restart
_DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True)
class Pin:
    """The version of a set in a batch, with its mark."""

    version: int
    mark: int
    schema_version: int  # the version from which the current schema of the set applies
    id_kind: str  # the type of ids of the set


@dataclass(frozen=True)
class PinnedStream:
    """The pinned batches of a stream."""

    set_name: str
    stream: str
    first_batch: int
    last_batch: int
    version: int  # of the last batch
    pinned_at: datetime  # of the last batch


def clean(connection: Connection, set_row: int, pipeline: str, batch: int, now: int) -> None:
    """Delete the pins of old batches, of silent pipelines all but the newest pin, and those of old SQL queries."""
    is_old = [
        and_(pins.c.made_at < now - KEPT_DAYS * _DAY, has_newer()),
        and_(pins.c.made_at < now - _DAY, pins.c.pipeline.startswith(SQL)),
    ]
    if not pipeline.startswith(SQL):  # the numbers of SQL queries have gaps, and several run at once
        is_old.append(and_(pins.c.pipeline == pipeline, pins.c.batch <= batch - KEPT_BATCHES))
    connection.execute(delete(pins).where(pins.c.set_id == set_row, or_(*is_old)))


def pinned_versions(connection: Connection, set_row: int, now: int) -> list[int]:
    """The versions that may be read again: by the newest batch of each stream after any time, and by SQL queries."""
    is_sql = pins.c.pipeline.startswith(SQL)
    needed = or_(and_(~is_sql, ~has_newer()), and_(is_sql, pins.c.made_at >= now - _DAY))
    return [
        int(version) for version in connection.scalars(select(pins.c.version).where(pins.c.set_id == set_row, needed))
    ]


def list_pins(connection: Connection, set_name: str | None = None) -> list[PinnedStream]:
    """The pinned batches, by set and stream."""
    same_stream = pins.alias("same_stream")
    same = same_stream.c.set_id == pins.c.set_id, same_stream.c.pipeline == pins.c.pipeline
    first_batch = select(func.min(same_stream.c.batch)).where(*same).scalar_subquery()
    columns = sets.c.name, pins.c.pipeline, first_batch, pins.c.batch, pins.c.version, pins.c.made_at
    newest = select(*columns).join(sets, sets.c.id == pins.c.set_id).where(~has_newer())
    if set_name is not None:
        newest = newest.where(sets.c.name == set_name)
    order = sets.c.name, pins.c.made_at.desc(), pins.c.pipeline
    found: Any = connection.execute(newest.order_by(*order)).all()
    return [
        PinnedStream(name, stream, first, last, version, as_datetime(made_at))
        for name, stream, first, last, version, made_at in found
    ]


def unpin(connection: Connection, stream: str, from_batch: int | None = None, set_row: int | None = None) -> int:
    """Delete the pins of a stream, all or from a batch on; returns how many."""
    return int(connection.execute(delete(pins).where(*_which(stream, from_batch, set_row))).rowcount)


def count_pins(connection: Connection, stream: str, from_batch: int | None = None, set_row: int | None = None) -> int:
    """How many pins `unpin` would delete."""
    counted = select(func.count()).select_from(pins).where(*_which(stream, from_batch, set_row))
    return int(connection.scalar(counted) or 0)


def _which(stream: str, from_batch: int | None, set_row: int | None) -> list[ColumnElement[bool]]:
    which = [pins.c.pipeline == stream]
    if from_batch is not None:
        which.append(pins.c.batch >= from_batch)
    if set_row is not None:
        which.append(pins.c.set_id == set_row)
    return which


def has_newer(more: Callable[[Any], ColumnElement[bool]] | None = None) -> ColumnElement[bool]:
    """Whether the stream of a pin has pinned a later batch of the same set, for which `more` holds."""
    newer = pins.alias("newer")
    same = [newer.c.set_id == pins.c.set_id, newer.c.pipeline == pins.c.pipeline, newer.c.batch > pins.c.batch]
    if more is not None:
        same.append(more(newer))
    return select(newer.c.batch).where(*same).exists()
