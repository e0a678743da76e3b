"""The named sets of a registry: create, find and drop."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from itertools import count
from typing import Any

from sqlalchemy import Connection, delete, false, insert, select
from sqlalchemy.exc import IntegrityError

from vedette.data.schema import Schema, check_time_zone
from vedette.errors import ExistingSetError, RegistryError, SchemaError, UnknownSetError, nearest, shown
from vedette.operators.window_join.query_set import JoinQuerySet
from vedette.queries.selectivity import read_selectivity
from vedette.registry.forms import WINDOWED_TEXT, ZONE
from vedette.registry.kinds import KINDS, find_kind
from vedette.registry.read.set_info import ID_KINDS, WINDOWS, SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.failures import DroppedError
from vedette.registry.store.tables import METADATA, samples, schemas, sets, snapshots, versions
from vedette.registry.store.values import is_text
from vedette.registry.write.locked_set import LockedSet, new_mark
from vedette.registry.write.samples import as_table, check_kind, write_sample


def create_set(
    database: Database,
    name: str,
    kind: str,
    schema: Any,
    time_zone: str,
    windows: str | None,
    ids: str | None,
    streams: Mapping[str, Any],
    sample: Any = None,
    max_match_share: Any = None,
    dimensions: Any = None,
) -> SetInfo:
    """Create an empty set, at version 0."""
    if not is_text(name) or not name or len(name.encode()) > 1000:
        raise RegistryError(f"the name of a set must be 1 to 1,000 bytes of UTF-8 without NUL; got {shown(name)}")
    find_kind(kind)
    windows, dimensions = _read_windows(kind, windows), _read_dimensions(kind, dimensions)
    if ids not in (None, *ID_KINDS):
        raise RegistryError(f"ids must be one of: {', '.join(ID_KINDS)}; got {ids!r}{nearest(str(ids), ID_KINDS)}")
    given = read_given_schemas(kind, schema, streams)
    written = json.dumps(given)
    uid = uuid.uuid4().hex
    share, kept = _read_sample(name, kind, given, check_time_zone(time_zone), sample, max_match_share)

    def make(connection: Connection) -> SetInfo:
        now = database.now(connection)
        values = {
            "uid": uid,
            "name": name,
            "kind": kind,
            "schemas": written,
            "schema_version": 0,
            "time_zone": time_zone,
            "windows": windows,
            "id_kind": ids,
            "version": 0,
            "oldest": 0,
            "n_active": 0,
            "n_parked": 0,
            "created_at": now,
            "max_match_share": share,
            "dimensions": dimensions,
        }
        row = connection.execute(insert(sets).values(values).returning(sets)).mappings().one()
        own = {"set_id": row["id"], "version": 0}
        connection.execute(insert(versions).values(**own, mark=new_mark(), made_at=now))
        connection.execute(insert(schemas).values(**own, schemas=written, time_zone=time_zone))
        if kept is not None:
            connection.execute(insert(samples).values(set_id=row["id"], **kept))
        return SetInfo.of(row)

    try:
        return database.write(make)
    except IntegrityError:
        made = database.read(lambda connection: find_set(database, connection, name))
        if made.uid == uid:  # an earlier attempt was committed, and only its answer was lost
            return made
        raise ExistingSetError(f"set {name!r} already exists; use another name, or drop it first") from None


def _read_windows(kind: str, windows: str | None) -> str | None:
    if KINDS[kind].form is not WINDOWED_TEXT:
        if windows is not None:
            raise RegistryError(f"a set of kind {kind} has no windows; only window joins have them")
        return None
    if windows not in (None, *WINDOWS):
        raise RegistryError(
            f"windows must be one of: {', '.join(WINDOWS)}; got {windows!r}{nearest(str(windows), WINDOWS)}"
        )
    return windows or "time"


def _read_dimensions(kind: str, dimensions: Any) -> int | None:
    if KINDS[kind].form is not ZONE:
        if dimensions is not None:
            raise RegistryError(f"a set of kind {kind} has no dimensions; only moving joins have them")
        return None
    if isinstance(dimensions, bool) or dimensions not in (None, 2, 3):
        raise RegistryError(f"dimensions must be 2 or 3; got {shown(dimensions)}")
    return int(dimensions or 2)


def _read_sample(
    name: str, kind: str, schemas: Mapping[str, str], time_zone: str, sample: Any, max_match_share: Any
) -> tuple[float | None, dict[str, str] | None]:
    """The share and the sample of a new set, as they are stored."""
    if sample is None and max_match_share is None:
        return None, None
    check_kind(kind, name)
    schema = Schema.parse(schemas[""])
    if sample is not None:
        sample = as_table(sample, schema)  # a stream can be read only once
    read = read_selectivity(sample, max_match_share, schema, time_zone)
    assert read is not None
    return read.max_share, write_sample(sample, read.max_share, schema, time_zone)


def read_given_schemas(kind: str, schema: Any, streams: Mapping[str, Any]) -> dict[str, str]:
    """The validated schemas of a set by stream, as they are stored."""
    if isinstance(schema, Mapping):
        streams, schema = {**schema, **streams}, None
    if set(streams) == {""}:
        schema, streams = streams[""], {}
    if KINDS[kind].schemas == "none":
        if schema or streams:
            raise SchemaError(f"a {kind} has no schema; create the set without one")
        return {}
    if KINDS[kind].schemas == "streams":
        if schema is not None:
            raise SchemaError(
                f"a {kind} has one schema per stream, such as left='id bigint, x double', right='id bigint, y double'"
            )
        made = JoinQuerySet(**streams)
        return {stream: str(made.schema_of(stream)) for stream in made.streams}
    if streams or schema is None:
        raise SchemaError(f"a set of kind {kind} needs one schema, such as 'symbol string, price double'")
    return {"": str(schema if isinstance(schema, Schema) else Schema.parse(schema))}


def list_sets(connection: Connection) -> list[SetInfo]:
    """All sets, sorted by name."""
    return [SetInfo.of(row) for row in connection.execute(select(sets).order_by(sets.c.name)).mappings()]


def find_set(database: Database, connection: Connection, which: str | SetInfo) -> SetInfo:
    """The current state of a set, by its name or by what was read of it before."""
    if isinstance(which, SetInfo):
        row = connection.execute(select(sets).where(sets.c.uid == which.uid)).mappings().first()
        if row is None:
            raise DroppedError(f"set {which.name!r} was dropped; if it was created again, read it again by its name")
        return SetInfo.of(row)
    name = which
    is_it = sets.c.name == name if is_text(name) else false()
    row = connection.execute(select(sets).where(is_it)).mappings().first()
    if row is not None:
        return SetInfo.of(row)
    names = list(connection.scalars(select(sets.c.name).order_by(sets.c.name).limit(1000)))
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    hint = (
        f"its sets are: {shown}{nearest(str(name), names)}"
        if names
        else "it has no sets yet; create one with `vedette set create`"
    )
    raise UnknownSetError(f"no set {name!r} in the registry {database}; {hint}")


def drop_set(database: Database, info: SetInfo) -> list[str]:
    """Delete a set with all its queries, versions and pins; returns the files of its snapshots, to be deleted."""
    attempts = count()
    files: list[str] = []

    def drop(connection: Connection) -> None:
        is_first = not next(attempts)
        try:
            LockedSet(database, connection, info, alone=True)
        except DroppedError:
            if is_first:
                raise
            return  # an earlier attempt was committed, and only its answer was lost
        files[:] = connection.scalars(select(snapshots.c.file).where(snapshots.c.set_id == info.row))
        for table in reversed(METADATA.sorted_tables):
            if "set_id" in table.c:
                connection.execute(delete(table).where(table.c.set_id == info.row))
        connection.execute(delete(sets).where(sets.c.id == info.row))

    database.write(drop)
    return files
