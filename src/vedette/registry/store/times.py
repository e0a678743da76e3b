"""Times as a registry stores them, in microseconds since 1970 in UTC, and as datetimes for its users."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

import numpy as np

from vedette.data.durations import read_duration
from vedette.errors import QueryError, shown

NEVER = "never"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_FIRST, _LAST = (  # the range of datetime
    (end.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND
    for end in (datetime.datetime.min, datetime.datetime.max)
)


@dataclass(frozen=True)
class Ttl:
    """A time to live, counted from when the change is written."""

    microseconds: int


def as_datetime(microseconds: int | None) -> Any:
    """The time in UTC; None for None.

    >>> as_datetime(1_500_000).isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    return None if microseconds is None else _EPOCH + microseconds * _MICROSECOND


def to_microseconds(value: Any, name: str) -> int:
    """A datetime with a time zone, in microseconds."""
    is_datetime = isinstance(value, datetime.datetime) and not _is_nat(value)
    if not is_datetime or value.utcoffset() is None:
        got = f"{value.isoformat()} without one" if is_datetime else shown(value)
        raise QueryError(
            f"{name} must be a datetime with a time zone, such as datetime.datetime(2030, 1, 31, tzinfo=datetime.UTC); "
            f"got {got}"
        )
    microseconds = int((value - _EPOCH) // _MICROSECOND)
    if not _FIRST <= microseconds <= _LAST:
        raise QueryError(f"{name} must be between the years 1 and 9999 in UTC; got {value.isoformat()}")
    return microseconds


def read_expiry(expires_at: Any, ttl: Any) -> int | Ttl | None:
    """When a query expires, from `expires_at` or `ttl`. "never" and pandas' NaT mean None."""
    expires_at, ttl = (None if _is_nat(each) else each for each in (expires_at, ttl))
    if expires_at is not None and ttl is not None:
        raise QueryError("expires_at and ttl are both given; give one of them")
    if ttl is not None:
        return Ttl(int(read_duration(ttl, "ttl", "timestamp")))
    is_never = expires_at is None or (isinstance(expires_at, str) and expires_at == NEVER)
    return None if is_never else to_microseconds(expires_at, "expires_at")


def _is_nat(value: Any) -> bool:
    """Whether the value is NaT, which does not equal itself."""
    return isinstance(value, (datetime.datetime, np.datetime64, np.timedelta64)) and bool(value != value)
