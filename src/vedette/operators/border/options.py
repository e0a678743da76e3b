"""The options of a border monitor, validated."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from vedette.data.durations import read_duration
from vedette.data.keyed_rows import KEY_TYPES, TIME_TYPES
from vedette.data.schema import Schema
from vedette.errors import QueryError, nearest, shown
from vedette.operators.border.metres import METRES
from vedette.operators.carried_rows import check_columns
from vedette.operators.stable_ids import EVENT_ID
from vedette.queries.metres import read_metres
from vedette.queries.query_options import check_once

HELD_BACK = "held_back"
EVENT_COLUMNS = (
    "key",
    "time",
    "query",
    "event",
    "reason",
    HELD_BACK,
    EVENT_ID,
    "version",
)  # names that events have themselves


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
    columns: Any = None
    event_id: Any = None
    metadata: Any = None
    cooldown: Any = None
    once: Any = False
    held_back: Any = None  # whether events say how many were held back; by default if something can be

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
        check_once(self.once)
        if self.event_id not in (None, True, False):
            raise QueryError(f"must be True or False; got {self.event_id!r}", option="event_id")
        check_columns(self.columns, EVENT_COLUMNS)
        check_columns(self.metadata, (*EVENT_COLUMNS, *self.carried), "metadata")
        self.margins(schema)
        key, time = schema.find(self.key), schema.find(self.time)
        if key is not None and key.type.widest.name not in KEY_TYPES:
            raise QueryError(f"{self.key!r} is {key.type}; a key must be a string or a whole number", option="key")
        if time is not None and time.type.widest.name not in TIME_TYPES:
            raise QueryError(
                f"{self.time!r} is {time.type}; a time must be a timestamp or a number (bigint or double)",
                option="time",
            )
        if time is not None:
            self.check_durations(time.type.widest.name)

    @property
    def carried(self) -> tuple[str, ...]:
        """The columns of rows that events have."""
        return tuple(self.columns or ())

    @property
    def has_event_ids(self) -> bool:
        """Whether events have ids: by default, if they also have columns of rows, or metadata."""
        return bool(self.carried or self.metadata) if self.event_id is None else bool(self.event_id)

    def check_durations(self, time_type: str) -> None:
        for name in ("expire_after", "dwell", "cooldown"):
            self.duration(name, time_type)

    def duration(self, name: str, time_type: str) -> int | float | None:
        """`expire_after`, `dwell` or `cooldown` in the units of the time column."""
        value = getattr(self, name)
        return None if value is None else read_duration(value, name, time_type)

    def margins(self, schema: Schema) -> dict[str, float]:
        """By numeric field, how far outside a range a value may be before the key leaves it; or in METRES."""
        if self.margin is None:
            return {}
        if isinstance(self.margin, str):
            metres = read_metres(self.margin)
            return {METRES: metres} if metres else {}
        numbers = [field.name for field in schema if field.type.is_number]
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
