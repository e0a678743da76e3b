"""Sets and queries as records with plain values, as commands print them and the HTTP service answers them."""

from __future__ import annotations

from typing import Any

from vedette.queries.query_options import OPTIONS
from vedette.registry.kinds import KINDS
from vedette.registry.read.query_info import QueryInfo
from vedette.registry.read.set_info import SetInfo
from vedette.registry.write.records import has_options


def query_record(query: QueryInfo, info: SetInfo) -> dict[str, Any]:
    """A query with the column names of files."""
    return {
        "id": query.id,
        **KINDS[info.kind].form.to_record(query),
        **({name: query.options.get(name) for name in OPTIONS} if has_options(info.kind) else {}),
        "state": query.state,
        "metadata": query.metadata,
        "expires_at": query.expires_at,
        "added": query.added_version,
        "removed": query.removed_version,
        "created_at": query.created_at,
        "ended_at": query.ended_at,
    }


def set_record(info: SetInfo) -> dict[str, Any]:
    """A set."""
    schema = info.schema.get("", None) if len(info.schema) < 2 else dict(info.schema)
    return {
        "name": info.name,
        "kind": info.kind,
        "ids": info.id_kind,
        "queries": info.n_active,
        "parked": info.n_parked,
        "version": info.version,
        "schema": schema,
        "time_zone": info.time_zone,
        "created_at": info.created_at,
        "max_match_share": info.max_match_share,
    }
