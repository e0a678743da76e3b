"""Looks queries up: one query by its id, its history, and pages of many queries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, cast, func, literal, select, text
from sqlalchemy.dialects.postgresql import JSONB

from vedette.data.ids import INTEGER, STRING
from vedette.errors import QueryError, RegistryError, UnknownQueryError, nearest, shown
from vedette.registry.read.query_info import ACTIVE, EXPIRED, PARKED, REMOVED, QueryInfo
from vedette.registry.read.reader import check_version, plain_version
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import id_column, revisions
from vedette.registry.store.values import LARGEST, is_number, is_text
from vedette.registry.write.locked_set import among
from vedette.registry.write.steps import read_ids

STATES = (ACTIVE, PARKED, REMOVED, EXPIRED)


def get_query(connection: Connection, info: SetInfo, query_id: Any) -> QueryInfo:
    """The active or parked revision of a query."""
    last = get_history(connection, info, query_id)[-1]
    if last.state not in (ACTIVE, PARKED):
        raise UnknownQueryError(
            f"no query {query_id!r} in set {info.name!r}: it was {last.state} with version {last.removed_version}"
        )
    return last


def get_history(connection: Connection, info: SetInfo, query_id: Any) -> list[QueryInfo]:
    """All revisions of a query, oldest first."""
    found: list[Any] = []
    known = _as_stored(info, query_id)
    if known is not None:
        is_it = and_(revisions.c.set_id == info.row, id_column(info.id_kind) == known)
        for state in (revisions.c.removed.is_not(None), revisions.c.removed.is_(None)):
            found += connection.execute(select(revisions).where(is_it, state).order_by(revisions.c.removed)).all()
    if not found:
        raise UnknownQueryError(f"no query {query_id!r} in set {info.name!r}, and its history has none either")
    return [QueryInfo.of(revision) for revision in found]


def find_ids(database: Database, connection: Connection, info: SetInfo, ids: Any) -> dict[Any, str]:
    """The ids that exist, each with its state, active or parked. All ids are sent in one statement."""
    read = read_ids(ids, info)
    if not read or info.id_kind is None:
        return {}
    column = id_column(info.id_kind)
    is_one = among(database, column, info.id_kind, read)
    found: dict[Any, str] = {}
    for state in (ACTIVE, *([PARKED] if info.n_parked else [])):
        ids_in_state = select(column).where(revisions.c.set_id == info.row, _in_state(info, state), is_one)
        found |= dict.fromkeys(connection.scalars(ids_in_state), state)
    return found


def list_queries(
    database: Database,
    connection: Connection,
    info: SetInfo,
    prefix: str | None,
    metadata: Mapping[str, Any] | None,
    search: str | None,
    state: str,
    after: Any,
    limit: int | None,
    at: int | None,
) -> list[QueryInfo]:
    """A page of queries in id order: those in a state now, or those that were active at a version."""
    column: Any = id_column(info.id_kind)
    wanted = [revisions.c.set_id == info.row, column.is_not(None)]
    if prefix is not None:
        wanted += _has_prefix(info, column, prefix)
    if after is not None:
        last = _as_stored(info, after)
        if last is None:
            raise QueryError(
                f"after must be the last id of the previous page; the ids of set {info.name!r} are "
                f"{info.id_kind or STRING}s; got {shown(after)}"
            )
        wanted.append(column > last)
    for name, value in (metadata or {}).items():
        wanted.append(_has_metadata(database, name, value))
    if search is not None:
        wanted.append(_has_text(search))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
        raise RegistryError(f"limit must be an integer of at least 0, or None for all; got {shown(limit)}")
    most = None if limit is None else min(limit, LARGEST)
    found: Select[Any] = select(revisions).where(*wanted).order_by(column).limit(most)
    if at is None:
        return [QueryInfo.of(revision) for revision in connection.execute(found.where(_in_state(info, state)))]
    if state != ACTIVE:
        raise RegistryError(f"with at, only active queries are listed; got state={state!r}; omit state or at")
    at = plain_version(at)
    check_version(info, at, "at")
    return [QueryInfo.of(revision) for revision in _find_at(connection, found, column, at, most)]


def _find_at(connection: Connection, found: Select[Any], column: Any, at: int, most: int | None) -> list[Any]:
    """Those of `found` that were active at a version. Active and ended revisions have separate indexes."""
    was_added = revisions.c.added + 0 <= at  # + 0 keeps the database from using the index of versions, sorted per page
    still = connection.execute(found.where(revisions.c.removed.is_(None), was_added)).all()
    if still and len(still) == most:  # so that all pages together read the ended revisions only once
        found = found.where(column <= getattr(still[-1], column.name))
    ended = connection.execute(found.where(revisions.c.removed.is_not(None), revisions.c.removed > at, was_added)).all()
    return sorted([*still, *ended], key=attrgetter(column.name))[:most]


def _as_stored(info: SetInfo, query_id: Any) -> str | int | None:
    """An id as the set stores it; None if no query of the set can have it."""
    if info.id_kind == INTEGER:
        return int(query_id) if is_number(query_id) else None
    return str(query_id) if is_text(query_id) else None


def _in_state(info: SetInfo, state: str) -> ColumnElement[bool]:
    if state not in STATES:
        raise RegistryError(f"unknown state {state!r}; states are: {', '.join(STATES)}{nearest(str(state), STATES)}")
    if state == ACTIVE:
        return revisions.c.removed.is_(None)
    if state == PARKED:
        return and_(revisions.c.removed.is_not(None), revisions.c.is_parked)
    later = revisions.alias("later")
    column = id_column(info.id_kind).name
    same = later.c.set_id == revisions.c.set_id, later.c[column].is_not(None), later.c[column] == revisions.c[column]
    is_active = select(later.c.id).where(*same, later.c.removed.is_(None)).exists()
    ended_later = select(later.c.id).where(*same, later.c.removed > revisions.c.removed).exists()
    return and_(revisions.c.removed.is_not(None), revisions.c.reason == state, ~is_active, ~ended_later)


def _has_prefix(info: SetInfo, column: Any, prefix: str) -> list[ColumnElement[bool]]:
    if not isinstance(prefix, str) or info.id_kind == INTEGER:
        raise QueryError(
            f"prefix must be the first characters of string ids; got {shown(prefix)}, and the ids of set "
            f"{info.name!r} are {info.id_kind or STRING}s"
        )
    if not is_text(prefix):
        raise QueryError(f"prefix contains NUL or half a surrogate pair, which no id can contain; got {shown(prefix)}")
    bounds = [column >= prefix]
    end = prefix.rstrip("\U0010ffff")
    if end:  # the first string after all with this prefix; surrogates are not characters
        following = ord(end[-1]) + 1
        bounds.append(column < end[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following))
    return bounds


def _has_text(search: Any) -> ColumnElement[bool]:
    """Whether a query's text contains these characters, ignoring case."""
    if not is_text(search):
        raise QueryError(f"search must be characters of a query's text; got {shown(search)}")
    return revisions.c.text.icontains(search, autoescape=True)


def _has_metadata(database: Database, name: str, value: Any) -> ColumnElement[bool]:
    """Whether a query's metadata has this name with this value."""
    if not isinstance(name, str) or not (value is None or isinstance(value, (str, int, float, bool))):
        raise QueryError(
            f"metadata values to look up must be strings, numbers, booleans or None; got {shown(name)}: {shown(value)}"
        )
    if not is_text(name) or (isinstance(value, str) and not is_text(value)):
        raise QueryError(f"metadata cannot contain NUL or half a surrogate pair; got {shown(name)}: {shown(value)}")
    try:
        wanted = json.dumps(value, allow_nan=False)
        in_sqlite = float(value) if isinstance(value, int) and not is_number(value) else value  # as SQLite reads it
    except (ValueError, OverflowError) as error:
        raise QueryError(f"metadata must be valid JSON: {error}") from None
    if database.is_postgres:
        return cast(revisions.c.metadata, JSONB)[name] == cast(literal(wanted), JSONB)
    each = func.json_each(revisions.c.metadata).table_valued("key", "value", "type")
    if value is None or isinstance(value, bool):
        is_value = each.c.type == wanted
    elif isinstance(value, str):
        is_value = and_(each.c.type == "text", each.c.value == value)
    else:
        is_value = and_(each.c.type.in_(("integer", "real")), each.c.value == in_sqlite)
    return select(text("1")).select_from(each).where(each.c.key == name, is_value).exists()
