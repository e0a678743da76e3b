"""A query as the registry returns it: one revision, from the version that added it to the version that ended it."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, field
from typing import Any

from vedette.registry.forms import SIDES
from vedette.registry.store.times import as_datetime

ACTIVE, REMOVED, REPLACED, EXPIRED, PARKED = "active", "removed", "replaced", "expired", "parked"


@dataclass(frozen=True)
class QueryInfo:
    """One revision of a query."""

    id: str | int
    state: str  # active, or why it ended: removed, replaced, expired, or parked by a change of the schema
    text: str | None  # None in kinds whose queries are not texts
    window: dict[str, Any] | None  # {"within": ...} or {"rows": ...}, in window joins
    low: float | None  # in band joins
    high: float | None
    sides: dict[str, float] | None  # of a zone, in moving joins: x_low, x_high, y_low, ...
    metadata: dict[str, Any]
    added_version: int
    removed_version: int | None
    created_at: datetime.datetime  # when this revision began
    ended_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    row: int = field(repr=False, compare=False)  # in the table of revisions
    options: dict[str, Any] = field(default_factory=dict)  # of border monitoring: cooldown, dwell, ...

    @classmethod
    def of(cls, revision: Any) -> QueryInfo:
        """From a row of the table of revisions."""
        return cls(
            revision.name if revision.number is None else revision.number,
            revision.reason or ACTIVE,
            revision.text,
            json.loads(revision.windows) if revision.windows else None,
            revision.low,
            revision.high,
            {name: getattr(revision, name) for name in SIDES if getattr(revision, name) is not None} or None,
            json.loads(revision.metadata) if revision.metadata else {},
            revision.added,
            revision.removed,
            as_datetime(revision.created_at),
            as_datetime(revision.ended_at),
            as_datetime(revision.expires_at),
            revision.id,
            json.loads(revision.options) if revision.options else {},
        )
