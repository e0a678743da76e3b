"""Queries of a registry as commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vedette.registry.read.query_info import QueryInfo
    from vedette.registry.read.set_info import SetInfo


def columns_of(info: SetInfo) -> tuple[str, ...]:
    """The columns of a query in files and tables: its id and its definition."""
    from vedette.registry.kinds import KINDS

    written = KINDS[info.kind].form.written
    return ("id", *written[: 2 * info.dimensions]) if info.dimensions else ("id", *written)


def to_record(query: QueryInfo, info: SetInfo) -> dict[str, Any]:
    """A query with the column names of files."""
    from vedette.queries.query_options import OPTIONS
    from vedette.registry.kinds import KINDS
    from vedette.registry.write.records import has_options

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
