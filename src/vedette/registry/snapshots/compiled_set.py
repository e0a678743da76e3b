"""Compiles a set of a registry from its database, without a base. Some kinds also get recently removed queries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import select

from vedette.data.ids import Ids
from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.queries.query_set import RETAINED_VERSIONS, QuerySet
from vedette.queries.set_changes import Changes
from vedette.registry.kinds import KINDS
from vedette.registry.read.reader import check_version, read_active, read_changes
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.store.tables import versions
from vedette.registry.write.sets import find_set


def build_set(database: Database, info: SetInfo, version: int, since: int | None = None) -> Any:
    """The set at a version, compiled from the database, with recently removed queries if the kind needs them."""
    now = database.read(lambda connection: find_set(database, connection, info))
    check_version(now, version, "version")
    first = version
    if KINDS[info.kind].keeps_removed:
        oldest = max(now.oldest, info.schema_version)
        wanted = version - RETAINED_VERSIONS
        first = min(version, max(oldest, wanted if since is None else min(wanted, since)))
    queries = make_empty(info)
    queries.begin(first, mark_of(database, info, first) or 0)
    for piece in read_active(database, info, first):
        valid = piece if version >= info.schema_version else _take_valid(piece, queries)
        queries.apply(replace(valid, versions=piece.versions[:0], marks=piece.marks[:0]))
    queries.apply(read_changes(database, info, first, version))
    return queries


def mark_of(database: Database, info: SetInfo, version: int) -> int | None:
    """The mark of a version; None if it is forgotten and has no base."""
    mark = select(versions.c.mark).where(versions.c.set_id == info.row, versions.c.version == version)
    return database.read(lambda connection: connection.scalar(mark))


def _take_valid(piece: Changes, queries: Any) -> Changes:
    """The queries from before a schema change that are valid under the new schema. The change parked the others."""
    errors: list[tuple[int, QueryError]] = []
    texts = piece.texts or []
    compile_texts(texts, queries.schema, queries.time_zone, ids=piece.added_ids, errors=errors)
    wrong = {place for place, _ in errors}
    valid = [place for place in range(piece.n_added) if place not in wrong]
    return replace(
        piece,
        added_ids=[piece.added_ids[place] for place in valid],
        added_versions=piece.added_versions[valid],
        texts=[texts[place] for place in valid],
        windows=None if piece.windows is None else [piece.windows[place] for place in valid],
        options=None if piece.options is None else [piece.options[place] for place in valid],
        metadata=None if piece.metadata is None else [piece.metadata[place] for place in valid],
    )


def make_empty(info: SetInfo) -> Any:
    """An empty set with the kind, schema and type of ids of `info`."""
    kind = KINDS[info.kind]
    queries = kind.make(kind.load_class(), info)
    ids: Ids = queries.view().ids if isinstance(queries, QuerySet) else queries.query_ids()
    ids.kind = info.id_kind
    return retaining(info, queries)


def retaining(info: SetInfo, queries: Any) -> Any:
    """The set. It retains removed queries if the state of pipelines refers to them. Its name is unique."""
    if hasattr(queries, "name"):  # sets whose answers have ids
        queries.name = info.uid  # a set that is dropped and created again has another one
    if KINDS[info.kind].keeps_removed:
        queries.retain()
    return queries
