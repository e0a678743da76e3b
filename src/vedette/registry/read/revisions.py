"""Reads a set as it was at a version: its queries, the history of all queries, and the list of its versions.

As in `reader`, a set of any size is read in pieces, each in its own transaction. A later change is not visible.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, func, select, tuple_

from vedette.registry.read.query_info import ACTIVE, QueryInfo
from vedette.registry.read.reader import check_version
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import revisions, versions
from vedette.registry.store.times import as_datetime
from vedette.registry.write.sets import find_set

_EACH = 10_000  # revisions per piece


@dataclass(frozen=True)
class VersionInfo:
    """A version, and how many revisions of queries begin and end with it."""

    version: int
    made_at: datetime
    n_added: int
    n_removed: int


def read_revisions(
    database: Database, info: SetInfo, at: int, *, active_only: bool, each: int = _EACH
) -> Iterator[list[QueryInfo]]:
    """The revisions that existed at a version, oldest first, in pieces; with `active_only`, those active at it."""
    place = (-1, -1)
    while True:

        def read(connection: Connection, after: tuple[int, int] = place) -> list[Any]:
            check_version(find_set(database, connection, info), at, "version")
            some = select(revisions).where(
                revisions.c.set_id == info.row,
                revisions.c.added <= at,
                tuple_(revisions.c.added, revisions.c.id) > tuple_(*after),
            )
            if active_only:
                some = some.where(revisions.c.removed.is_(None) | (revisions.c.removed > at))
            return list(connection.execute(some.order_by(revisions.c.added, revisions.c.id).limit(each)))

        found = database.read(read)
        yield [_as_of(QueryInfo.of(row), at) for row in found]
        if len(found) < each:
            return
        place = (found[-1].added, found[-1].id)


def _as_of(query: QueryInfo, at: int) -> QueryInfo:
    """A revision as it was at a version: it had not ended yet if it ended later."""
    if query.removed_version is None or query.removed_version <= at:
        return query
    return dataclasses.replace(query, state=ACTIVE, removed_version=None, ended_at=None)


def read_versions(database: Database, info: SetInfo, at: int) -> list[VersionInfo]:
    """The readable versions up to and including `at`."""

    def read(connection: Connection) -> list[VersionInfo]:
        now = find_set(database, connection, info)
        check_version(now, at, "version")
        own = versions.c.set_id == info.row, versions.c.version >= now.oldest, versions.c.version <= at
        made = connection.execute(
            select(versions.c.version, versions.c.made_at).where(*own).order_by(versions.c.version)
        )
        n_added, n_removed = _count(connection, info, revisions.c.added), _count(connection, info, revisions.c.removed)
        return [
            VersionInfo(version, as_datetime(made_at), n_added.get(version, 0), n_removed.get(version, 0))
            for version, made_at in made
        ]

    return database.read(read)


def _count(connection: Connection, info: SetInfo, column: Column[Any]) -> dict[int, int]:
    """The number of revisions by version."""
    counted = select(column, func.count()).where(revisions.c.set_id == info.row, column.is_not(None)).group_by(column)
    return {int(version): int(n) for version, n in connection.execute(counted)}
