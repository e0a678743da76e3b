"""Reports of queries that are reported once for all keys: which batch of a stream reported each, and their removal.

A task notes a report before it emits it. The first batch of a stream that notes a revision of a query is the only one
that emits it, also if the batch is repeated. So a later batch does not, even if the query is not removed yet. The
driver removes the query, after the batch was committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, literal, or_, select

from vedette.errors import RegistryError
from vedette.registry.read.query_info import REMOVED
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import id_column, reports, revisions
from vedette.registry.write.locked_set import LockedSet, among

ALL_PARTS = -1  # the part of a report that is the first of all parts
_COLUMNS = ("set_id", "revision", "stream", "batch", "part", "made_at")


def note_reports(
    database: Database, info: SetInfo, stream: str, batch: int, version: int, ids: Sequence[Any], part: int = ALL_PARTS
) -> list[Any]:
    """Note that a part of a batch reports queries, at a version of the set. Returns those that it may emit."""
    column = id_column(info.id_kind)
    active = and_(revisions.c.added <= version, or_(revisions.c.removed.is_(None), revisions.c.removed > version))
    which = revisions.c.set_id == info.row, active, among(database, column, info.id_kind, ids)

    def work(connection: Connection) -> list[Any]:
        facts = (literal(value) for value in (stream, batch, part, database.now(connection)))
        new = select(revisions.c.set_id, revisions.c.id, *facts).where(*which)
        connection.execute(database.insert_into(reports).from_select(_COLUMNS, new).on_conflict_do_nothing())
        is_own = reports.c.set_id == info.row, reports.c.stream == stream, reports.c.batch == batch
        noted = select(column).join(reports, reports.c.revision == revisions.c.id).where(*which, *is_own)
        if part != ALL_PARTS:
            noted = noted.where(reports.c.part == part)
        return list(connection.scalars(noted))

    return database.write(work)


def remove_reported(database: Database, info: SetInfo, streams: Mapping[str, int] | None) -> list[Any]:
    """Remove the queries that were reported, under one version; returns their ids.

    With `streams`, all of them must have reported a query, each up to a batch.
    """
    if streams is not None and not all(type(each) is int for each in streams.values()):
        raise RegistryError(f"streams must have the number of a batch by the id of each stream; got {streams!r}")
    if streams is not None and not streams:
        return []

    def is_noted(*which: ColumnElement[bool]) -> ColumnElement[bool]:
        own = reports.c.set_id == info.row, reports.c.revision == revisions.c.id
        return select(reports.c.batch).where(*own, *which).exists()

    given = (streams or {}).items()
    are_noted = [is_noted(reports.c.stream == stream, reports.c.batch <= batch) for stream, batch in given]
    are_noted = are_noted or [is_noted()]
    active = revisions.c.set_id == info.row, revisions.c.removed.is_(None), *are_noted

    def find(connection: Connection) -> bool:
        return connection.scalar(select(revisions.c.id).where(*active).limit(1)) is not None

    def work(connection: Connection) -> list[Any]:
        locked = LockedSet(database, connection, info)
        found = list(connection.execute(select(revisions.c.id, locked.id_column).where(*active)))
        if found:
            locked.advance()
            locked.end(*are_noted, reason=REMOVED)
            locked.save()
        return [query_id for _, query_id in found]

    return database.write(work) if database.read(find) else []
