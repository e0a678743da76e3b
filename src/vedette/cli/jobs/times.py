"""Times of operators as times of rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any


def as_time(clock: Any, time_type: str) -> Any:
    """An operator's clock as a time that rows may have."""
    if time_type != "timestamp":
        return clock
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(clock))
