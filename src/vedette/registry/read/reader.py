"""Reads a set by version: its changes after one version, or all active queries at one version, as columns.

A version never changes once it exists. So a set of any size can be read in pieces, each in its own transaction, and
the pieces together are exactly that version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    Connection,
    Double,
    Text,
    cast,
    func,
    literal_column,
    null,
    select,
    tuple_,
    union_all,
)

from vedette.data.ids import INTEGER
from vedette.errors import RegistryError, shown
from vedette.queries.set_changes import Changes
from vedette.registry.kinds import KINDS
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import id_column, revisions, schemas, sets, versions
from vedette.registry.write.sets import find_set

_ATTRIBUTES = ("options", "metadata")
_EACH = 100_000  # queries per piece
_UNKNOWN = (
    "the changes of set {!r} since version {} are unknown: the version is forgotten, or the database was restored to "
    "an older state; open the set again"
)


_SELECT_AUTHORS = select(versions.c.version, versions.c.author)


class HistoryError(RegistryError):
    """The changes since a version are unknown: the version is forgotten, or belongs to another history."""


def read_changes(
    database: Database, which: str | SetInfo, since: int, until: int | None, mark: int | None = None
) -> Changes:
    """The changes after version `since`, up to and including `until` (default: the current version).

    With `mark`, HistoryError is raised if version `since` has another mark or is forgotten.
    """

    since, until = plain_version(since), plain_version(until)

    def read(connection: Connection) -> Changes:
        info = find_set(database, connection, which)
        last = info.version if until is None else until
        if mark is not None and mark != _mark_of(connection, info, since):
            raise HistoryError(_UNKNOWN.format(info.name, since))
        check_version(info, since, "since")
        check_version(info, last, "until")
        return read_between(connection, info, since, last)

    return database.read(read)


def read_between(connection: Connection, info: SetInfo, since: int, last: int) -> Changes:
    """The changes after version `since` up to `last`, in one statement, so that they are from one state.

    Raises HistoryError if some of them are forgotten.
    """
    if last <= since:
        return Changes(_numbers([]), _numbers([]), **_columns(info, []))
    found = _fetch(connection, _select_between(info, since, last))
    oldest, marks, removed, added = ([each[1:] for each in found if each[0] == part] for part in range(4))
    if not oldest or oldest[0][0] > since or [version for _, version, *_ in marks] != [*range(since + 1, last + 1)]:
        raise HistoryError(_UNKNOWN.format(info.name, since))
    return Changes(
        _numbers([version for _, version, *_ in marks]),
        _numbers([mark for mark, *_ in marks]),
        [query_id for _, _, query_id, *_ in removed],
        _numbers([version for _, version, *_ in removed]),
        **_columns(info, added),
    )


def _select_between(info: SetInfo, since: int, last: int) -> Any:
    """What `read_between` reads, in four parts: the oldest version, marks, removed queries, added queries."""
    query_id, stored = id_column(info.id_kind), _stored(info)
    blanks = [cast(null(), Double() if isinstance(each.type, Double) else Text()) for each in stored]
    no_id = cast(null(), BigInteger() if info.id_kind == INTEGER else Text())
    of_set, of_version = revisions.c.set_id == info.row, versions.c.set_id == info.row

    def select_part(number: int, *columns: Any) -> Any:
        return select(literal_column(str(number)).label("part"), *columns)

    parts = (
        select_part(0, sets.c.oldest.label("key"), sets.c.version.label("version"), no_id, *blanks).where(
            sets.c.uid == info.uid
        ),
        select_part(1, versions.c.mark, versions.c.version, no_id, *blanks).where(
            of_version, versions.c.version > since, versions.c.version <= last
        ),
        select_part(2, revisions.c.id, revisions.c.removed, query_id, *blanks).where(
            of_set, revisions.c.removed > since, revisions.c.removed <= last
        ),
        select_part(3, revisions.c.id, revisions.c.added, query_id, *stored).where(
            of_set, revisions.c.added > since, revisions.c.added <= last
        ),
    )
    return union_all(*parts).order_by("part", "version", "key")


def read_active(database: Database, which: str | SetInfo, at: int | None, each: int = _EACH) -> Iterator[Changes]:
    """All queries that were active at a version, oldest first, in pieces. Each query has the version that added it.

    Only the last piece has the version itself with its mark, so pieces can be applied one after another.
    """
    info = database.read(lambda connection: find_set(database, connection, which))
    version = info.version if at is None else plain_version(at)
    place = (-1, -1)
    while True:

        def read(connection: Connection, after: tuple[int, int] = place) -> tuple[Sequence[Any], int]:
            check_version(find_set(database, connection, info), version, "at")
            some = _select_queries(info).where(
                revisions.c.added <= version,
                revisions.c.removed.is_(None) | (revisions.c.removed > version),
                tuple_(revisions.c.added, revisions.c.id) > tuple_(*after),
            )
            found = _fetch(connection, some.order_by(revisions.c.added, revisions.c.id).limit(each))
            return found, _mark_of(connection, info, version) or 0

        found, mark = database.read(read)
        is_last = len(found) < each
        own = ([version], [mark]) if is_last else ([], [])
        yield Changes(_numbers(own[0]), _numbers(own[1]), **_columns(info, found))
        if is_last:
            return
        place = (found[-1][1], found[-1][0])


def read_marks(database: Database, name: str, until: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The readable versions up to and including `until`, and the mark of each."""

    def read(connection: Connection) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        info = find_set(database, connection, name)
        last = info.version if until is None else until
        readable = select(versions.c.version, versions.c.mark).where(
            versions.c.set_id == info.row, versions.c.version <= last, versions.c.version >= info.oldest
        )
        found = connection.execute(readable.order_by(versions.c.version)).all()
        return _numbers([version for version, _ in found]), _numbers([mark for _, mark in found])

    return database.read(read)


def read_schema_at(database: Database, name: str, version: int) -> tuple[dict[str, str], str]:
    """The schemas by stream, and the time zone, at a version."""
    version = plain_version(version)

    def read(connection: Connection) -> tuple[dict[str, str], str]:
        info = find_set(database, connection, name)
        check_version(info, version, "at")
        until = select(schemas.c.schemas, schemas.c.time_zone).where(
            schemas.c.set_id == info.row, schemas.c.version <= version
        )
        text, time_zone = connection.execute(until.order_by(schemas.c.version.desc()).limit(1)).one()
        return json.loads(text), time_zone

    return database.read(read)


def read_authors(connection: Connection, info: SetInfo, among: Iterable[int]) -> dict[int, str]:
    """The authors of these versions, as far as they are recorded."""
    chosen = versions.c.set_id == info.row, versions.c.version.in_(list(among)), versions.c.author.is_not(None)
    return {int(version): author for version, author in connection.execute(_SELECT_AUTHORS.where(*chosen))}


def count_by_author(connection: Connection, info: SetInfo, author: str) -> int:
    """The number of active revisions that an author has made."""
    is_same = (versions.c.set_id == revisions.c.set_id) & (versions.c.version == revisions.c.added)
    own = revisions.c.set_id == info.row, revisions.c.removed.is_(None), versions.c.author == author
    counted = select(func.count()).select_from(revisions).join(versions, is_same).where(*own)
    return int(connection.scalar(counted) or 0)


def plain_version(version: Any) -> Any:
    """A NumPy integer as a Python one: SQLite would read it as bytes, which compare greater than any number."""
    return int(version) if isinstance(version, np.integer) else version


def check_version(info: SetInfo, version: Any, name: str) -> None:
    """Raise RegistryError if the set does not have this version, or has forgotten it."""
    if isinstance(version, bool) or not isinstance(version, (int, np.integer)):
        raise RegistryError(f"{name} must be a version, an integer; got {shown(version)}")
    if version > info.version or version < 0:
        raise RegistryError(f"set {info.name!r} has no version {version}; it is at version {info.version}")
    if version < info.oldest:
        raise RegistryError(
            f"version {version} of set {info.name!r} is forgotten; the oldest readable version is {info.oldest}"
        )


def _mark_of(connection: Connection, info: SetInfo, version: int) -> int | None:
    """The mark of a version; None if it is forgotten or does not exist yet."""
    mark = select(versions.c.mark).where(versions.c.set_id == info.row, versions.c.version == version)
    return None if version < info.oldest else connection.scalar(mark)


def _select_queries(info: SetInfo) -> Any:
    columns: list[Any] = [revisions.c.id, revisions.c.added, id_column(info.id_kind)]
    columns += _stored(info)
    return select(*columns).where(revisions.c.set_id == info.row)


def _fetch(connection: Connection, statement: Any) -> Sequence[Any]:
    """Rows as the driver returns them: twice as fast as SQLAlchemy's own rows."""
    result = connection.execute(statement)
    found: Sequence[Any] = result.cursor.fetchall()
    result.close()
    return found


def _columns(info: SetInfo, found: Sequence[Any]) -> dict[str, Any]:
    """What `_select_queries` found, as arguments of Changes."""
    form = KINDS[info.kind].form
    columns = [list(column) for column in zip(*found, strict=True)] or [[] for _ in range(5 + len(form.stored))]
    own = dict(zip(_ATTRIBUTES, columns[-len(_ATTRIBUTES) :], strict=True))
    return {
        "added_versions": _numbers(columns[1]),
        "added_ids": columns[2],
        **form.to_changes(columns[3 : -len(_ATTRIBUTES)]),
        **{name: texts for name, texts in own.items() if any(texts)},
    }


def _stored(info: SetInfo) -> list[Any]:
    """The columns of a query: those of its form, then its options and metadata."""
    return [revisions.c[name] for name in (*KINDS[info.kind].form.stored, *_ATTRIBUTES)]


def _numbers(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)
