"""The options of a border monitor, validated."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from vedette.data.durations import read_duration
from vedette.data.keyed_rows import KEY_TYPES, TIME_TYPES
from vedette.data.schema import Schema
from vedette.errors import QueryError, nearest, shown

_NUMBERS = ("bigint", "double", "decimal")


@dataclass(frozen=True)
class MonitorOptions:
    """The options of `QuerySet.border`."""

    key: str
    time: str
    late: str = "drop"
    null_key: str = "error"
    expire_after: Any = None
    dwell: Any = None
    margin: Any = None
    cross: bool = False

    def check(self, schema: Schema) -> None:
        """Raise QueryError if an option is invalid."""
        for name in ("key", "time"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value:
                raise QueryError(f"must be the name of a column of the rows; got {value!r}", option=name)
        for name, choices in (("late", ("drop", "apply")), ("null_key", ("error", "drop"))):
            value = getattr(self, name)
            if value not in choices:
                raise QueryError(f"must be one of: {', '.join(map(repr, choices))}; got {value!r}", option=name)
        if not isinstance(self.cross, bool):
            raise QueryError(f"must be True or False; got {self.cross!r}", option="cross")
        self.margins(schema)
        key, time = schema.find(self.key), schema.find(self.time)
        if key is not None and key.type.name not in KEY_TYPES:
            raise QueryError(f"{self.key!r} is {key.type}; a key must be a string or a whole number", option="key")
        if time is not None and time.type.name not in TIME_TYPES:
            raise QueryError(
                f"{self.time!r} is {time.type}; a time must be a timestamp or a number (bigint or double)",
                option="time",
            )
        if time is not None:
            self.check_durations(time.type.name)

    def check_durations(self, time_type: str) -> None:
        for name in ("expire_after", "dwell"):
            self.duration(name, time_type)

    def duration(self, name: str, time_type: str) -> int | float | None:
        """`expire_after` or `dwell` in the units of the time column."""
        value = getattr(self, name)
        return None if value is None else read_duration(value, name, time_type)

    def margins(self, schema: Schema) -> dict[str, float]:
        """By numeric field, how far outside a range a value may be before the key leaves it."""
        if self.margin is None:
            return {}
        numbers = [field.name for field in schema if field.type.name in _NUMBERS]
        if not isinstance(self.margin, dict):
            margin = _check_margin(self.margin)
            return dict.fromkeys(numbers, margin) if margin else {}
        margins = {}
        for name, value in self.margin.items():
            field = schema.find(str(name))
            if field is None or field.name not in numbers:
                raise QueryError(
                    f"names {name!r}, which is not a numeric field; these are: {', '.join(numbers)}"
                    f"{nearest(str(name), numbers)}",
                    option="margin",
                )
            margins[field.name] = _check_margin(value)
        return {name: margin for name, margin in margins.items() if margin}


def _check_margin(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= sys.float_info.max:
        raise QueryError(
            f"must be a number of 0 or more, or a dict of such numbers by field; got {shown(value)}", option="margin"
        )
    return float(value)
