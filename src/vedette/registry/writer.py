"""How a change is written: under a lock of the set, as one transaction and one version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError, IntegrityError

from vedette.errors import ConflictError, QueryError, RegistryError
from vedette.ids import INTEGER
from vedette.registry.database import Database
from vedette.registry.edit import COLUMNS, KEPT, Edit, Rows
from vedette.registry.locked_set import LockedSet, new_mark
from vedette.registry.query_info import REMOVED, REPLACED
from vedette.registry.set_info import SetInfo
from vedette.registry.sets import find_set
from vedette.registry.steps import kind_of
from vedette.registry.tables import lives, versions

_INSERTED = ("set_id", "name", "number", "added", "is_parked", *COLUMNS, "created_at")
_CHUNK = 20_000  # rows that are handed to SQLite at a time


class Writer:
    """Writes one edit of one set."""

    def __init__(self, database: Database, edit: Edit, expect_version: int | None) -> None:
        self.database = database
        self.edit = edit
        self.expect_version = expect_version

    def write(self, info: SetInfo) -> int:
        """The new version. Either all of the edit is in it, or an error is raised and nothing has changed."""
        while True:
            info = self._checked(info)
            mark = new_mark()
            attempts = iter(range(1_000_000))
            try:
                outcome = self.database.write(self._work(info, mark, attempts))
            except IntegrityError:
                self._explain_twice(info)
                continue  # who was in the way has gone
            if isinstance(outcome, int):
                return outcome
            info = outcome  # its schema has changed since the texts were checked

    def _checked(self, info: SetInfo) -> SetInfo:
        """The set whose schema the texts fit."""
        try:
            self.edit.check_texts(info)
        except QueryError:
            now = self.database.read(lambda connection: find_set(self.database, connection, info.name))
            if (now.uid, now.schema, now.time_zone) == (info.uid, info.schema, info.time_zone):
                raise
            info = now  # it has changed since it was read
            self.edit.check_texts(info)
        return info

    def _work(self, info: SetInfo, mark: int, attempts: Iterator[int]) -> Callable[[Connection], int | SetInfo]:
        def work(connection: Connection) -> int | SetInfo:
            if next(attempts):  # an attempt before may have been committed, and only its answer lost
                done = connection.scalar(
                    select(versions.c.version).where(versions.c.set_id == info.row, versions.c.mark == mark)
                )
                if done is not None:
                    return int(done)
            locked = LockedSet(self.database, connection, info)
            if (locked.info.schema, locked.info.time_zone) != (info.schema, info.time_zone):
                return locked.info
            self._check(locked)
            if not self.edit:
                return locked.version
            locked.end_due()
            locked.advance(mark)
            replaced = self._end(locked)
            insert_lives(locked, self.edit.added)
            insert_lives(locked, replaced)
            locked.save()
            return locked.version

        return work

    def _check(self, locked: LockedSet) -> None:
        if self.expect_version not in (None, locked.version):
            raise ConflictError(
                f"set {locked.info.name!r} is at version {locked.version}, not {self.expect_version}: another writer "
                f"was first; nothing was changed; read what is new, changes(since={self.expect_version}), and try again"
            )
        kinds = {kind_of([query_id]) for query_id in self.edit.ids}
        if locked.id_kind is not None:
            kinds.discard(locked.id_kind)
            if kinds:
                got = f"the {kinds.pop()} {self.edit.ids[0]!r}"
                raise QueryError(f"the ids of set {locked.info.name!r} are {locked.id_kind}s; got {got}")
        elif kinds:
            locked.id_kind = kinds.pop()

    def _end(self, locked: LockedSet) -> Rows:
        """End what is replaced and removed; the replaced ones with what they keep filled in."""
        if locked.n_parked:
            new = [*self.edit.added.ids, *self.edit.passing]
            for query_id in _ids_of(locked, lives.c.is_parked, locked.among(new)):
                raise QueryError(
                    f"id {query_id!r} is parked in set {locked.info.name!r}: its text does not fit the schema any "
                    f"more; use replace to give it another, or remove it"
                )
        passing = self.edit.passing
        for query_id in _ids_of(locked, lives.c.removed.is_(None), locked.among(passing)) if len(passing) else ():
            raise QueryError(_stands_already(query_id, locked.info))
        replaced = self._fill(locked, self.edit.replaced)
        for ids, reason in ((self.edit.replaced.ids, REPLACED), (self.edit.removed, REMOVED)):
            if not len(ids):
                continue
            n_ended = locked.end(locked.among(ids), reason=reason)
            if n_ended < len(ids):
                n_ended += _unpark(locked, ids)
            if n_ended < len(ids):
                self._explain_missing(locked, ids)
        return replaced

    def _fill(self, locked: LockedSet, rows: Rows) -> Rows:
        """The rows with all that they keep of the lives before them."""
        kept = [name for name in COLUMNS if name not in rows.values or KEPT in rows.values[name]]
        if not len(rows.ids) or not kept:
            return rows
        chosen = lives.c.set_id == locked.row, locked.among(rows.ids), lives.c.removed.is_(None) | lives.c.is_parked
        columns = [locked.id_column, *(lives.c[name] for name in kept)]
        found = {life[0]: life[1:] for life in locked.connection.execute(select(*columns).where(*chosen))}
        missing = [query_id for query_id in rows.ids if query_id not in found]
        if missing:
            self._explain_missing(locked, missing)
        values = dict(rows.values)
        for place, name in enumerate(kept):
            old = [found[query_id][place] for query_id in rows.ids]
            given = rows.column(name, KEPT)
            values[name] = [before if new is KEPT else new for before, new in zip(old, given, strict=True)]
        return Rows(rows.ids, values)

    def _explain_missing(self, locked: LockedSet, ids: Sequence[Any]) -> None:
        """Raise for the first that does not stand."""
        # Those that stood have ended with this very version.
        just_ended = lives.c.removed == locked.version
        known = set(_ids_of(locked, just_ended | lives.c.removed.is_(None), locked.among(ids)))
        missing = next(query_id for query_id in ids if query_id not in known)
        raise QueryError(f"no query {missing!r} stands in set {locked.info.name!r}")

    def _explain_twice(self, info: SetInfo) -> None:
        """Raise for the first of the added ids that stands already, if one still does."""

        def find(connection: Connection) -> list[Any]:
            locked = LockedSet(self.database, connection, info)
            locked.end_due()
            locked.save()
            return _ids_of(locked, lives.c.removed.is_(None), locked.among(self.edit.added.ids))

        standing = set(self.database.write(find))
        for query_id in self.edit.added.ids:
            if query_id in standing:
                raise QueryError(_stands_already(query_id, info))
        if not len(self.edit.added.ids):
            raise RegistryError(f"set {info.name!r} holds a query twice; run verify")


def _stands_already(query_id: Any, info: SetInfo) -> str:
    return f"id {query_id!r} stands already in set {info.name!r}; use replace to change it, or another id"


def _ids_of(locked: LockedSet, *which: Any) -> list[Any]:
    column = locked.id_column
    return list(locked.connection.scalars(select(column).where(lives.c.set_id == locked.row, *which)))


def _unpark(locked: LockedSet, ids: Sequence[Any]) -> int:
    """Let queries be parked no more; how many were."""
    told = lives.c.set_id == locked.row, lives.c.is_parked, locked.among(ids)
    n = locked.connection.execute(lives.update().where(*told).values(is_parked=False)).rowcount
    locked.n_parked -= n
    return n


def insert_lives(locked: LockedSet, rows: Rows) -> None:
    """Let queries stand from the current version on."""
    n = len(rows.ids)
    if not n:
        return
    none = repeat(None, n)
    names, numbers = (none, rows.ids) if locked.id_kind == INTEGER else (rows.ids, none)
    values = [rows.column(name) for name in COLUMNS]
    values[-1] = [end if end is None or isinstance(end, int) else locked.now + end.microseconds for end in values[-1]]
    lines = zip(
        repeat(locked.row, n), names, numbers, repeat(locked.version), repeat(False), *values, repeat(locked.now)
    )
    (_copy if locked.database.is_postgres else _insert)(locked.connection, lines)
    locked.n_standing += n


def _insert(connection: Connection, lines: Iterator[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * len(_INSERTED))
    statement = f"INSERT INTO {lives.name} ({', '.join(_INSERTED)}) VALUES ({marks})"
    while chunk := list(islice(lines, _CHUNK)):
        connection.exec_driver_sql(statement, chunk)


def _copy(connection: Connection, lines: Iterator[tuple[Any, ...]]) -> None:
    import psycopg

    cursor = connection.connection.cursor()
    try:
        with cursor.copy(f"COPY {lives.name} ({', '.join(_INSERTED)}) FROM STDIN") as copy:
            for line in lines:
                copy.write_row(line)
    except psycopg.Error as error:
        raise DBAPIError.instance("COPY", None, error, psycopg.Error, hide_parameters=True) from error
    finally:
        cursor.close()
