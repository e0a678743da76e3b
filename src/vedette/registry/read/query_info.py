"""What a registry tells of a query: one life of it, from the version that added it to the one that ended it."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from typing import Any

from vedette.registry.store.times import as_datetime

STANDING, REMOVED, REPLACED, EXPIRED, PARKED = "standing", "removed", "replaced", "expired", "parked"


@dataclass(frozen=True)
class QueryInfo:
    """A query as it stands, or as it stood."""

    id: str | int
    state: str  # standing, or why it ended: removed, replaced, expired, or parked by a change of the schema
    text: str | None  # None in band joins
    window: dict[str, Any] | None  # {"within": ...} or {"rows": ...}, in window joins
    low: float | None  # the ends, in band joins
    high: float | None
    metadata: dict[str, Any]
    added_version: int
    removed_version: int | None
    created_at: datetime.datetime  # when this life began
    ended_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    row: int = field(repr=False, compare=False)  # in the table of lives

    @classmethod
    def of(cls, life: Any) -> QueryInfo:
        """What a row of the table of lives tells."""
        return cls(
            life.name if life.number is None else life.number,
            life.reason or STANDING,
            life.text,
            json.loads(life.windows) if life.windows else None,
            life.low,
            life.high,
            json.loads(life.metadata) if life.metadata else {},
            life.added,
            life.removed,
            as_datetime(life.created_at),
            as_datetime(life.ended_at),
            as_datetime(life.expires_at),
            life.id,
        )
