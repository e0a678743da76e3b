"""Another schema for a set whose queries stand: refused where it breaks some, unless those may be parked.

A parked query stands no longer, and waits for its owner to replace or to remove it.
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


def alter_set(database: Database, info: SetInfo, schema: Any, time_zone: str | None, force: bool) -> int:
    """The version from which another schema is in force. What is not given stays as it is at that moment."""
    while True:
        outcome = _alter(database, info, schema, time_zone, force)
        if isinstance(outcome, int):
            return outcome
        info = outcome  # another has altered it since it was read


def _alter(database: Database, info: SetInfo, schema: Any, time_zone: str | None, force: bool) -> int | SetInfo:
    """The new version, or the set as it is now, where it has another schema or time zone than when it was read."""
    wanted = read_given_schemas(info.kind, info.schema if schema is None else schema, {})
    zone = check_time_zone(info.time_zone if time_zone is None else time_zone)
    if info.streams != [name for name in wanted if name]:
        raise RegistryError(
            f"set {info.name!r} joins the streams {', '.join(info.streams)}; the new schema names {', '.join(wanted)}"
        )
    read = read_schemas(wanted)
    if read is None:
        raise RegistryError(f"set {info.name!r} is of kind {info.kind}, which has no schema to alter")
    if not force:  # by force, writers of queries are told what is wrong with the sample, and so is `verify`
        selectivity_of(database, replace(info, schema=wanted, time_zone=zone))
    # Most texts are compiled before the set is locked, so that other writers wait for a moment only.
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
        version = locked.advance(mark)
        if still:
            connection.execute(
                update(revisions)
                .where(revisions.c.set_id == info.row, locked.among(list(still)), revisions.c.removed.is_(None))
                .values(is_parked=True)
            )
            locked.n_parked += locked.end(locked.among(list(still)), reason=PARKED)
        told = {"schemas": json.dumps(wanted), "time_zone": zone}
        connection.execute(insert(schemas).values(set_id=info.row, version=version, **told))
        connection.execute(update(sets).where(sets.c.id == info.row).values(schema_version=version, **told))
        locked.save()
        return version

    return database.write(work)


def _read_new(locked: LockedSet, since: int) -> tuple[list[Any], list[int], list[str]]:
    """What stands and was added after a version: ids, versions, texts."""
    new = revisions.c.set_id == locked.row, revisions.c.removed.is_(None), revisions.c.added > since
    found = locked.connection.execute(select(locked.id_column, revisions.c.added, revisions.c.text).where(*new)).all()
    return [revision[0] for revision in found], [revision[1] for revision in found], [revision[2] for revision in found]


def _compile(ids: Sequence[Any], added: Sequence[int], texts: Sequence[str], schema: Schema, time_zone: str) -> Broken:
    errors: list[tuple[int, QueryError]] = []
    compile_texts(texts, schema, time_zone, ids=ids, errors=errors)
    return {ids[place]: (added[place], error) for place, error in errors}


def _find_active(locked: LockedSet, broken: Broken) -> Broken:
    """Those that still stand as they were compiled."""
    if not broken:
        return {}
    stands = revisions.c.set_id == locked.row, revisions.c.removed.is_(None), locked.among(list(broken))
    found = locked.connection.execute(select(locked.id_column, revisions.c.added).where(*stands))
    added = {revision[0]: revision[1] for revision in found}
    return {query_id: told for query_id, told in broken.items() if added.get(query_id) == told[0]}


def _explain(info: SetInfo, broken: list[tuple[Any, QueryError]]) -> str:
    breaks = count(len(broken), "standing query", "standing queries")
    lines = [
        f"the new schema breaks {breaks} of set {info.name!r}, so it was not altered; replace or remove them first, or "
        f"force it, which parks them:",
        *(f"  {error.reason}" for _, error in broken[:_SHOWN]),
    ]
    if len(broken) > _SHOWN:
        lines.append(f"  and {count(len(broken) - _SHOWN, 'query', 'queries')} more")
    return "\n".join(lines)
