"""Time that passes by the clock of the service, for monitors with clock = "wall"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vedette.data.durations import number_or_duration, read_interval
from vedette.errors import QueryError, shown
from vedette.serve.operators.operator import Operator

_LONGEST_DELAY = 30 * 86400.0  # seconds
_DELAY = "1 second"  # unless the monitor has another


@dataclass(frozen=True)
class WallClock:
    """The clock of one monitor: the moment that its rows have reached if none is later than the delay."""

    operator: Operator
    delay: float  # seconds

    @classmethod
    def of(cls, operator: Operator, options: dict[str, Any]) -> WallClock | None:
        """None if time passes with rows only. Raises QueryError if times of the rows are not those of a clock."""
        if options.get("clock", "event") == "event":
            return None
        given = options.get("delay")
        delay = read_interval(number_or_duration(_DELAY if given is None else given), "delay")
        if delay > _LONGEST_DELAY:
            raise QueryError(f"is longer than 30 days; got {shown(given)}", option="delay")
        made = cls(operator, delay)
        made.time_at(0.0)
        return made

    def time_at(self, seconds: float) -> Any:
        """The time of the rows at a moment of the clock, in seconds since 1970."""
        return self.operator.wall_time(seconds - self.delay)
