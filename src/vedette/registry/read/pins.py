"""Pins: the version of a set that each batch of a stream is evaluated against.

The first task of a batch writes the pin; all others read it. Spark repeats a batch that it has not committed, so a pin
must outlive the process. The pins of the last batches of a stream are kept. If a stream is silent for long, only its
newest pin is kept, and the version of that pin is not forgotten until the pin is deleted.

Spark commits a batch before it begins the next. So a new run of a stream can repeat the newest pinned batch, but no
earlier one. If it asks for an earlier one, its checkpoint was copied or restored, and that is an error: the old pin
belongs to another run.

A SQL query that is not a stream also has pins, so that all its tasks see one version. They are kept for a day.

The type of ids in the answers of a pipeline never changes. If a set has no type of ids yet, its first pin makes them
strings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, and_, delete, func, literal, or_, select, update

from vedette.data.ids import STRING
from vedette.errors import RegistryError
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.failures import DroppedError
from vedette.registry.store.tables import pins, sets, versions
from vedette.registry.store.times import as_datetime
from vedette.registry.write.locked_set import LockedSet, is_due

KEPT_BATCHES = 1000
KEPT_DAYS = 7
SQL = "sql:"  # the first characters of a stream whose batches are SQL queries; it never continues after a restart
_CLEANED_EVERY = 50  # batches
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


def pin_version(database: Database, info: SetInfo, pipeline: str, batch: int, run: str | None = None) -> Pin:
    """The pin of a batch. If it does not exist, expired queries end and the current version is pinned.

    `run` identifies a run of the pipeline. A pin of another run is used only for the newest batch of that run.

    The set is locked only if queries have expired or the type of ids is not known. So in PostgreSQL, a long change
    does not delay batches.
    """
    if not isinstance(pipeline, str) or not pipeline or isinstance(batch, bool) or not isinstance(batch, int):
        raise RegistryError(
            f"a pin needs the name of a pipeline and the number of a batch; got {pipeline!r} and {batch!r}"
        )
    is_it = pins.c.set_id == sets.c.id, pins.c.pipeline == pipeline, pins.c.batch == batch
    marked = versions.c.set_id == sets.c.id, versions.c.version == pins.c.version
    joined = sets.outerjoin(pins, and_(*is_it)).outerjoin(versions, and_(*marked))
    columns = pins.c.version, versions.c.mark, sets.c.schema_version, sets.c.id_kind, _is_outdated(run)
    query = select(*columns).select_from(joined).where(sets.c.uid == info.uid)

    def find(connection: Connection) -> Any:
        found = connection.execute(query).first()
        if found is None:
            raise DroppedError(f"set {info.name!r} was dropped by another process; nothing was changed")
        if found.is_outdated:
            raise RegistryError(
                f"batch {batch} of stream {pipeline!r} was answered by another run, which has continued with later "
                f"batches: the checkpoint was copied, or restored to an older state. {_remedy(pipeline, batch)}. If "
                f"the original stream also continues, write another UUID into the file `metadata` of the copied "
                f"checkpoint instead, and delete `.metadata.crc`"
            )
        return found

    known = database.read(find)
    if None not in (known.version, known.id_kind):
        return _to_pin(known, info, pipeline, batch)

    def pin(connection: Connection) -> Any:
        now = database.now(connection)
        if connection.scalar(select(is_due(info.row, now))):
            locked = LockedSet(database, connection, info)
            locked.end_due()
            locked.save()
        if known.id_kind is None:
            is_open = sets.c.uid == info.uid, sets.c.id_kind.is_(None)
            connection.execute(update(sets).where(*is_open).values(id_kind=STRING))
        now_current = select(
            sets.c.id, literal(pipeline), literal(batch), sets.c.version, literal(now), literal(run, Text)
        )
        now_current = now_current.where(sets.c.uid == info.uid).with_for_update(read=True, key_share=True)
        names = ["set_id", "pipeline", "batch", "version", "made_at", "run"]
        insertion = database.insert_into(pins).from_select(names, now_current).on_conflict_do_nothing()
        is_first = connection.execute(insertion.returning(pins.c.version)).first() is not None  # of several tasks
        if is_first and (batch % _CLEANED_EVERY == 0 or pipeline.startswith(SQL)):
            _clean(connection, info.row, pipeline, batch, now)
        return find(connection)

    made = database.write(pin)
    if made.version is None:
        raise RegistryError(
            f"the pin of batch {batch} of stream {pipeline!r} was deleted while it was written; try again"
        )
    return _to_pin(made, info, pipeline, batch)


def _to_pin(found: Any, info: SetInfo, pipeline: str, batch: int) -> Pin:
    if found.mark is None:
        raise RegistryError(
            f"batch {batch} of stream {pipeline!r} is pinned to version {found.version} of set {info.name!r}, which is "
            f"forgotten, or was lost when the database was restored to an older state. {_remedy(pipeline, batch)}"
        )
    return Pin(found.version, found.mark, found.schema_version, found.id_kind)


def _remedy(pipeline: str, batch: int) -> str:
    return (
        f"To answer this batch and later ones with the current version, stop the stream, run "
        f"`vedette registry unpin {pipeline} --from-batch {batch}`, and start it again"
    )


def _is_outdated(run: str | None) -> ColumnElement[bool]:
    """Whether a pin belongs to another run, which has pinned a later batch."""
    if run is None:
        return literal(False).label("is_outdated")
    is_outdated = and_(pins.c.run != run, _has_newer(lambda newer: newer.c.run != run))
    return func.coalesce(is_outdated, False).label("is_outdated")


def _clean(connection: Connection, set_row: int, pipeline: str, batch: int, now: int) -> None:
    """Delete the pins of old batches, of silent pipelines all but the newest pin, and those of old SQL queries."""
    own = pins.c.set_id == set_row
    if not pipeline.startswith(SQL):  # the numbers of SQL queries have gaps, and several run at once
        connection.execute(delete(pins).where(own, pins.c.pipeline == pipeline, pins.c.batch <= batch - KEPT_BATCHES))
    connection.execute(delete(pins).where(own, pins.c.made_at < now - KEPT_DAYS * _DAY, _has_newer()))
    connection.execute(delete(pins).where(own, pins.c.made_at < now - _DAY, pins.c.pipeline.startswith(SQL)))


def pinned_versions(connection: Connection, set_row: int, now: int) -> list[int]:
    """The versions that may be read again: by the newest batch of each stream after any time, and by SQL queries."""
    is_sql = pins.c.pipeline.startswith(SQL)
    needed = or_(and_(~is_sql, ~_has_newer()), and_(is_sql, pins.c.made_at >= now - _DAY))
    return [
        int(version) for version in connection.scalars(select(pins.c.version).where(pins.c.set_id == set_row, needed))
    ]


def list_pins(connection: Connection, set_name: str | None = None) -> list[PinnedStream]:
    """The pinned batches, by set and stream."""
    same_stream = pins.alias("same_stream")
    same = same_stream.c.set_id == pins.c.set_id, same_stream.c.pipeline == pins.c.pipeline
    first_batch = select(func.min(same_stream.c.batch)).where(*same).scalar_subquery()
    columns = sets.c.name, pins.c.pipeline, first_batch, pins.c.batch, pins.c.version, pins.c.made_at
    newest = select(*columns).join(sets, sets.c.id == pins.c.set_id).where(~_has_newer())
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


def _has_newer(more: Callable[[Any], ColumnElement[bool]] | None = None) -> ColumnElement[bool]:
    """Whether the stream of a pin has pinned a later batch of the same set, for which `more` holds."""
    newer = pins.alias("newer")
    same = [newer.c.set_id == pins.c.set_id, newer.c.pipeline == pins.c.pipeline, newer.c.batch > pins.c.batch]
    if more is not None:
        same.append(more(newer))
    return select(newer.c.batch).where(*same).exists()
