"""Times and durations as the command line has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any


def read_duration(text: str | None) -> str | int | float | None:
    """A number where the text is one, for times that are numbers; else a duration such as '5 minutes' as it stands.

    >>> read_duration("90"), read_duration("1.5"), read_duration("5 minutes")
    (90, 1.5, '5 minutes')
    """
    for number in (int, float):
        try:
            return None if text is None else number(text)
        except ValueError:
            pass
    return text


def as_time(clock: Any, time_type: str) -> Any:
    """An operator's clock as a time that rows may have."""
    if time_type != "timestamp":
        return clock
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(clock))
