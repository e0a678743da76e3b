"""Writes a change: under a lock of the set, as one transaction and one version."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import count, islice, repeat
from typing import Any

from sqlalchemy import Connection, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from vedette.data.ids import INTEGER
from vedette.errors import ConflictError, ExistingQueryError, QueryError, RegistryError, UnknownQueryError
from vedette.registry.read.query_info import ACTIVE, PARKED, REMOVED, REPLACED
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import revisions
from vedette.registry.write.edit import COLUMNS, KEPT, Edit, Rows
from vedette.registry.write.locked_set import LockedSet, new_mark
from vedette.registry.write.samples import selectivity_of
from vedette.registry.write.sets import find_set
from vedette.registry.write.steps import kind_of, merge_options
from vedette.settings import settings

_INSERTED = ("set_id", "name", "number", "added", "is_parked", *COLUMNS, "created_at")
_CHUNK = 20_000  # rows per statement in SQLite
_MANY = 50_000  # new rows after which PostgreSQL's statistics are updated


class Writer:
    """Writes one edit of one set."""

    def __init__(self, database: Database, edit: Edit, expect_version: int | None, author: str | None = None) -> None:
        self.database = database
        self.edit = edit
        self.expect_version = expect_version
        self.author = author

    def write(self, info: SetInfo) -> int:
        """Write the edit; returns the new version. If an error is raised, nothing has changed."""
        while True:
            info = self._checked(info)
            mark = new_mark()
            attempts = count()
            try:
                outcome = self.database.write(self._work(info, mark, attempts))
            except IntegrityError:
                self._raise_duplicate(info)
                continue  # the conflicting query has been removed
            if isinstance(outcome, int):
                return outcome
            info = outcome  # the schema has changed since the texts were checked

    def _checked(self, info: SetInfo) -> SetInfo:
        """Check the texts; returns the set with the schema that was used."""
        try:
            self.edit.check_texts(info, selectivity_of(self.database, info))
        except QueryError:
            now = self.database.read(lambda connection: find_set(self.database, connection, info.name))
            if (now.uid, now.schema, now.time_zone) == (info.uid, info.schema, info.time_zone):
                raise
            info = now  # the set has changed since it was read
            self.edit.check_texts(info, selectivity_of(self.database, info))
        return info

    def _work(self, info: SetInfo, mark: int, attempts: Iterator[int]) -> Callable[[Connection], int | SetInfo]:
        def work(connection: Connection) -> int | SetInfo:
            locked = LockedSet(self.database, connection, info)
            # An earlier attempt may have been committed, with only its answer lost. Under the lock it has ended.
            made = locked.find_made(mark) if next(attempts) else None
            if made is not None:
                return made
            if (locked.info.schema, locked.info.time_zone) != (info.schema, info.time_zone):
                return locked.info
            self._check(locked)
            if not self.edit:
                return locked.version
            locked.end_due()
            locked.advance(mark, self.author)
            replaced = self._end(locked)
            if len(self.edit.added.ids):
                settings().check("max_queries", locked.n_active + len(self.edit.added.ids) + len(replaced.ids))
            insert_revisions(locked, self.edit.added)
            insert_revisions(locked, replaced)
            locked.save()
            return locked.version

        return work

    def _check(self, locked: LockedSet) -> None:
        if self.expect_version not in (None, locked.version):
            raise ConflictError(
                f"set {locked.info.name!r} is at version {locked.version}, not at the expected version "
                f"{self.expect_version}: another writer has changed it; nothing was changed; read the changes since "
                f"version {self.expect_version}, and try again"
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
        """End replaced and removed queries; returns the replaced ones, completed with the values that they keep."""
        edit = self.edit
        if len(edit.transient):
            for query_id in _ids_of(locked, revisions.c.removed.is_(None), locked.among(edit.transient)):
                raise ExistingQueryError(why_not_added(query_id, ACTIVE, locked.info))
        parked = self._find_parked(locked) if locked.n_parked else set()
        replaced = self._fill(locked, edit.replaced)
        if parked:
            removed = parked.intersection(edit.removed)
            for some, values in ((removed, {"reason": REMOVED}), (parked - removed, {})):
                own = revisions.c.set_id == locked.row, revisions.c.is_parked, locked.among(list(some))
                locked.connection.execute(update(revisions).where(*own).values(is_parked=False, **values))
            locked.n_parked -= len(parked)
        for ids, reason in ((edit.replaced.ids, REPLACED), (edit.removed, REMOVED)):
            if len(ids) and locked.end(locked.among(ids), reason=reason) < len(ids):
                just_ended = _ids_of(locked, revisions.c.removed == locked.version, locked.among(ids))
                _check_known(locked.info, ids, parked.union(just_ended))
        return replaced

    def _find_parked(self, locked: LockedSet) -> set[Any]:
        """The parked queries among those replaced or removed. A parked query cannot be added, nor keep its text."""
        edit = self.edit
        named = [*edit.added.ids, *edit.transient, *edit.replaced.ids, *edit.removed]
        parked = set(_ids_of(locked, revisions.c.is_parked, locked.among(named)))
        texts = edit.replaced.column("text", KEPT)
        same = [query_id for query_id, text in zip(edit.replaced.ids, texts, strict=True) if text is KEPT]
        for query_id in parked.intersection([*edit.added.ids, *edit.transient, *same]):
            raise QueryError(why_not_added(query_id, PARKED, locked.info))
        return parked

    def _fill(self, locked: LockedSet, rows: Rows) -> Rows:
        """The rows, completed with the values that they keep from their previous revision, active or parked."""
        kept = [name for name in COLUMNS if name not in rows.values or KEPT in rows.values[name] or name == "options"]
        if not len(rows.ids) or not kept:
            return rows
        columns = [locked.id_column, *(revisions.c[name] for name in kept)]
        found: dict[Any, Any] = {}
        for which in [revisions.c.removed.is_(None), *([revisions.c.is_parked] if locked.n_parked else [])]:
            chosen = select(*columns).where(revisions.c.set_id == locked.row, which, locked.among(rows.ids))
            found |= {revision[0]: revision[1:] for revision in locked.connection.execute(chosen)}
        _check_known(locked.info, rows.ids, found)
        values = dict(rows.values)
        for place, name in enumerate(kept):
            old = [found[query_id][place] for query_id in rows.ids]
            given = rows.column(name, KEPT)
            join = merge_options if name == "options" else _take_new
            values[name] = [
                before if new is KEPT else join(before, new) for before, new in zip(old, given, strict=True)
            ]
        return Rows(rows.ids, values)

    def _raise_duplicate(self, info: SetInfo) -> None:
        """Raise QueryError for the first added id that already exists, if one still does."""

        def find(connection: Connection) -> list[Any]:
            locked = LockedSet(self.database, connection, info)
            locked.end_due()
            locked.save()
            return _ids_of(locked, revisions.c.removed.is_(None), locked.among(self.edit.added.ids))

        active = set(self.database.write(find))
        for query_id in self.edit.added.ids:
            if query_id in active:
                raise ExistingQueryError(why_not_added(query_id, ACTIVE, info))
        if not len(self.edit.added.ids):
            raise RegistryError(f"set {info.name!r} contains a query twice; run `vedette registry verify`")


def _take_new(before: Any, new: Any) -> Any:
    return new


def why_not_added(query_id: Any, state: str, info: SetInfo) -> str:
    """Why a query with an existing id cannot be added, or cannot keep its text."""
    if state == PARKED:
        return (
            f"query {query_id!r} is parked in set {info.name!r}: its text is invalid since the schema changed; "
            f"replace it with another text, or remove it"
        )
    return f"id {query_id!r} already exists in set {info.name!r}; use replace to change it, or another id"


def _check_known(info: SetInfo, ids: Sequence[Any], known: Container[Any]) -> None:
    """Raise QueryError for the first unknown id."""
    for query_id in ids:
        if query_id not in known:
            raise UnknownQueryError(f"no query {query_id!r} in set {info.name!r}")


def _ids_of(locked: LockedSet, *which: Any) -> list[Any]:
    column = locked.id_column
    return list(locked.connection.scalars(select(column).where(revisions.c.set_id == locked.row, *which)))


def insert_revisions(locked: LockedSet, rows: Rows) -> None:
    """Insert queries under the current version."""
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
    locked.n_active += n
    if locked.database.is_postgres and n >= _MANY:
        locked.connection.execute(text(f"ANALYZE {revisions.name}"))  # or the next queries would use an old plan


def _insert(connection: Connection, lines: Iterator[tuple[Any, ...]]) -> None:
    marks = ", ".join("?" * len(_INSERTED))
    statement = f"INSERT INTO {revisions.name} ({', '.join(_INSERTED)}) VALUES ({marks})"
    while chunk := list(islice(lines, _CHUNK)):
        connection.exec_driver_sql(statement, chunk)


def _copy(connection: Connection, lines: Iterator[tuple[Any, ...]]) -> None:
    import psycopg

    cursor = connection.connection.cursor()
    try:
        with cursor.copy(f"COPY {revisions.name} ({', '.join(_INSERTED)}) FROM STDIN") as copy:
            for line in lines:
                copy.write_row(line)
    except psycopg.Error as error:
        raise DBAPIError.instance("COPY", None, error, psycopg.Error, hide_parameters=True) from error
    finally:
        cursor.close()
