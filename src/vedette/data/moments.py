"""Now: one moment per batch, as columns beside those of the rows.

Queries see the moment as a field `now()`. A range that moves with it, such as `ts > now() - INTERVAL 5 MINUTES`, is a
fixed range of the virtual field `ts - now()`, so indexes need not change when time passes.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Collection, Iterable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.schema import Field, Schema, Type
from vedette.errors import RowError, shown

NOW = "now()"
NEVER = 2**63 - 1  # as a moment
_SINCE = f" - {NOW}"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def relative_to_now(name: str) -> str:
    """The name of the virtual field: a timestamp minus the moment, in microseconds."""
    return f"{name}{_SINCE}"


def find_field(schema: Schema, name: str) -> Field | None:
    """A field of the schema, or a virtual one."""
    found = schema.find(name)
    if found is not None:
        return found
    if name == NOW:
        return Field(NOW, Type("timestamp"))
    base = schema.find(name.removesuffix(_SINCE)) if name.endswith(_SINCE) else None
    is_valid = base is not None and base.type.name == "timestamp" and relative_to_now(base.name) == name
    return Field(name, Type("bigint")) if is_valid else None


def is_moment(name: str) -> bool:
    """Whether a name may be that of a virtual field."""
    return name.endswith(NOW)


def is_virtual(schema: Schema, name: str) -> bool:
    return schema.find(name) is None and find_field(schema, name) is not None


def virtual_fields(schema: Schema) -> list[Field]:
    """The virtual fields that queries over a schema may have."""
    names = [NOW, *(relative_to_now(field.name) for field in schema if field.type.name == "timestamp")]
    return [field for name in names if schema.find(name) is None and (field := find_field(schema, name)) is not None]


def needed_fields(names: Iterable[str]) -> list[str]:
    """The fields that rows need for the named fields, some of which may be virtual."""
    return [base_of(name) for name in names if name != NOW]


def read_moment(now: Any, time_zone: str) -> int:
    """Microseconds since 1970 of a datetime; of the clock for None."""
    if now is None:
        return time.time_ns() // 1000
    if not isinstance(now, dt.datetime):
        raise RowError(f"now must be a datetime.datetime, such as datetime.now(UTC); got {shown(now)}")
    aware = now if now.tzinfo else now.replace(tzinfo=ZoneInfo(time_zone))
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)


def with_moment(
    columns: dict[str, Column], names: Collection[str], now: int | NDArray[np.int64], n_rows: int
) -> dict[str, Column]:
    """The columns, and those of the virtual fields `names`. There is one moment, or one per row."""
    added = {}
    for name in names:
        if name == NOW:
            added[name] = Column(np.full(n_rows, now, np.int64))
        else:
            column = columns[base_of(name)]
            added[name] = Column(minus(column.values, now), column.valid)
    return columns | added


def base_of(name: str) -> str:
    """The field of which a virtual field other than NOW is the difference."""
    return name.removesuffix(_SINCE)


def minus(values: Any, now: Any) -> Any:
    """Differences of 64-bit integers, kept within 64 bits."""
    if _is_small(values) and _is_small(now):
        return values - now
    with np.errstate(over="ignore"):
        found = values - now
    over = ((values ^ now) & (values ^ found)) < 0
    return np.where(over, np.where(values < 0, -(2**63), 2**63 - 1), found) if over.any() else found


def _is_small(values: Any) -> bool:
    """Whether differences of such numbers fit into 64 bits."""
    return bool(np.size(values) and np.min(values) > -(2**62) and np.max(values) < 2**62)
