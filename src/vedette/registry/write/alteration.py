"""Changes the schema of a set. If active queries are invalid under the new schema, it is an error, or they are parked.

A parked query is not active. It stays parked until its owner replaces or removes it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, select, update

from vedette.data.schema import Schema, check_time_zone
from vedette.errors import QueryError, RegistryError, count
from vedette.language import compile_texts
from vedette.registry.read.query_info import PARKED
from vedette.registry.read.reader import read_active
from vedette.registry.read.set_info import SetInfo, read_schemas
from vedette.registry.store.database import Database
from vedette.registry.store.tables import revisions, schemas, sets
from vedette.registry.write.locked_set import LockedSet, new_mark
from vedette.registry.write.samples import selectivity_of
from vedette.registry.write.sets import read_given_schemas

_SHOWN = 10  # queries that an error lists

Broken = dict[Any, tuple[int, QueryError]]  # by id: the version that added the query, and what is wrong


def alter_set(
    database: Database, info: SetInfo, schema: Any, time_zone: str | None, force: bool, author: str | None = None
) -> int:
    """Change the schema or time zone; returns the version from which it applies. What is not given does not change."""
    while True:
        outcome = _alter(database, info, schema, time_zone, force, author)
        if isinstance(outcome, int):
            return outcome
        info = outcome  # another process has altered the set since it was read


def _alter(
    database: Database, info: SetInfo, schema: Any, time_zone: str | None, force: bool, author: str | None
) -> int | SetInfo:
    """The new version. If another process has changed the schema or time zone, the set as it is now."""
    wanted = read_given_schemas(info.kind, info.schema if schema is None else schema, {})
    zone = check_time_zone(info.time_zone if time_zone is None else time_zone)
    if info.streams != [name for name in wanted if name]:
        raise RegistryError(
            f"set {info.name!r} joins the streams {', '.join(info.streams)}; the new schema names {', '.join(wanted)}"
        )
    read = read_schemas(wanted)
    if read is None:
        raise RegistryError(f"set {info.name!r} is of kind {info.kind}, which has no schema to alter")
    if not force:  # with force, `verify` and writers of queries report an invalid sample later
        selectivity_of(database, replace(info, schema=wanted, time_zone=zone))
    # Most texts are compiled before the set is locked, so that other writers wait only briefly.
    broken: Broken = {}
    for piece in read_active(database, info, info.version):
        broken |= _compile(piece.added_ids, piece.added_versions.tolist(), piece.texts or [], read, zone)

    mark, attempts = new_mark(), itertools.count()

    def work(connection: Connection) -> int | SetInfo:
        locked = LockedSet(database, connection, info)
        made = locked.find_made(mark) if next(attempts) else None
        if made is not None:
            return made
        if (locked.info.schema, locked.info.time_zone) != (info.schema, info.time_zone):
            return locked.info
        locked.end_due()
        still = _find_active(locked, broken | _compile(*_read_new(locked, info.version), read, zone))
        if still and not force:
            listed = [(query_id, error) for query_id, (_, error) in still.items()]
            raise RegistryError(_explain(locked.info, listed), listed)
        version = locked.advance(mark, author)
        if still:
            connection.execute(
                update(revisions)
                .where(revisions.c.set_id == info.row, locked.among(list(still)), revisions.c.removed.is_(None))
                .values(is_parked=True)
            )
            locked.n_parked += locked.end(locked.among(list(still)), reason=PARKED)
        values = {"schemas": json.dumps(wanted), "time_zone": zone}
        connection.execute(insert(schemas).values(set_id=info.row, version=version, **values))
        connection.execute(update(sets).where(sets.c.id == info.row).values(schema_version=version, **values))
        locked.save()
        return version

    return database.write(work)


def _read_new(locked: LockedSet, since: int) -> tuple[list[Any], list[int], list[str]]:
    """The active queries that were added after a version: ids, versions, texts."""
    new = revisions.c.set_id == locked.row, revisions.c.removed.is_(None), revisions.c.added > since
    found = locked.connection.execute(select(locked.id_column, revisions.c.added, revisions.c.text).where(*new)).all()
    return [revision[0] for revision in found], [revision[1] for revision in found], [revision[2] for revision in found]


def _compile(ids: Sequence[Any], added: Sequence[int], texts: Sequence[str], schema: Schema, time_zone: str) -> Broken:
    errors: list[tuple[int, QueryError]] = []
    compile_texts(texts, schema, time_zone, ids=ids, errors=errors)
    return {ids[place]: (added[place], error) for place, error in errors}


def _find_active(locked: LockedSet, broken: Broken) -> Broken:
    """The queries that are still active in the revision that was compiled."""
    if not broken:
        return {}
    active = revisions.c.set_id == locked.row, revisions.c.removed.is_(None), locked.among(list(broken))
    found = locked.connection.execute(select(locked.id_column, revisions.c.added).where(*active))
    added = {revision[0]: revision[1] for revision in found}
    return {query_id: each for query_id, each in broken.items() if added.get(query_id) == each[0]}


def _explain(info: SetInfo, broken: list[tuple[Any, QueryError]]) -> str:
    invalid = count(len(broken), "active query is invalid", "active queries are invalid")
    lines = [
        f"{invalid} under the new schema of set {info.name!r}; nothing was changed; replace or remove them first, or "
        f"use force to park them:",
        *(f"  {error.reason}" for _, error in broken[:_SHOWN]),
    ]
    if len(broken) > _SHOWN:
        lines.append(f"  and {count(len(broken) - _SHOWN, 'query', 'queries')} more")
    return "\n".join(lines)
