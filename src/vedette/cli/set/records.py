"""The columns of a registry's sets in tables."""

from __future__ import annotations

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
