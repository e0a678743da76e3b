"""Sets of a registry as commands print them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo

COLUMNS = (
    "name",
    "kind",
    "ids",
    "queries",
    "parked",
    "version",
    "schema",
    "time_zone",
    "created_at",
    "max_match_share",
)


def to_record(info: SetInfo) -> dict[str, Any]:
    """A set as a record."""
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
