"""When a residual can change because time passes: the uses of now() in its expression.

A moment that is moved by intervals rises with now(), except at breaks: where the clocks change, and at midnight, where
months are added. Compared with something that does not depend on now(), it is a moving bound. Its date, its hour and
the like are steps, which change with the clock. Everything else is refused. The moments found are all at which
something changes, and some at which nothing does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.moments import NEVER, NOW, minus
from vedette.errors import QueryError
from vedette.language.expressions import DATE, TIMESTAMP, TIMESTAMP_NTZ, Typed
from vedette.language.residual import Residual
from vedette.language.times import MICROS_PER_DAY, MICROS_PER_SECOND, Zone

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_SECOND, _MINUTE, _HOUR = MICROS_PER_SECOND, 60 * MICROS_PER_SECOND, 3600 * MICROS_PER_SECOND
_STEPS = {"hour": _HOUR, "minute": _MINUTE, "second": _SECOND, "whole seconds": _SECOND}
_TRUNCATED = {"hour": _HOUR, "minute": _MINUTE, "second": _SECOND}
_TOO_FINE = ("millisecond", "microsecond")
_DIFFERENCE = "timestamp - timestamp"
_ADVICE = (
    "compare a timestamp with now() plus or minus an interval, or use current_date, date_trunc, year, month, day, "
    "hour, minute or second of now()"
)

Integers = NDArray[np.int64]


class CannotFollowError(ValueError):
    """A use of now() of which the moments of change are not known; the text names it."""


@dataclass
class NowUses:
    """The uses of now() in the expression of a residual."""

    moved: list[Typed] = field(default_factory=list)  # timestamps that rise with now()
    bounds: list[tuple[Typed, Typed, int]] = field(default_factory=list)  # rising by 1 or -1, compared with fixed
    steps: list[tuple[Typed, int, int]] = field(default_factory=list)  # a timestamp, the unit, or its slot
    has_breaks: bool = False

    @classmethod
    def of(cls, residual: Residual) -> NowUses:
        """Raises CannotFollowError."""
        uses = cls(has_breaks=not Zone(residual.time_zone).is_fixed)
        uses._read(residual.expression)
        for _, _, slot in uses.steps:
            units = (
                {str(each).lower() for each in pc.unique(residual.constants[slot]).to_pylist()} if slot >= 0 else set()
            )
            if not units.isdisjoint(_TOO_FINE):
                raise CannotFollowError("date_trunc to less than a second")
        return uses

    def _read(self, node: Typed) -> None:
        """Note the uses in a node whose value does not rise with now() by itself."""
        if not _uses_now(node):
            return
        if self._read_step(node):
            return
        rising = [arg for arg in node.args if _is_rising(arg)]
        if rising and (node.op not in _COMPARISONS or len(rising) > 1):
            raise CannotFollowError(f"'{node.op}'")
        if rising:
            other = node.args[1 if rising[0] is node.args[0] else 0]
            self.bounds.append((rising[0], other, self._read_rising(rising[0])))
            self._read(other)
            return
        for arg in node.args:
            self._read(arg)

    def _read_rising(self, node: Typed) -> int:
        """1 if the value rises with now(), -1 if it falls."""
        if node.op == _DIFFERENCE:
            slope = 1 if _uses_now(node.args[0]) else -1
            self._read_rising(node.args[0 if slope > 0 else 1])
            return slope
        while node.op != "field":
            if node.type == TIMESTAMP:
                self.moved.append(node)
            self.has_breaks |= node.op.endswith("months")
            node = node.args[0]
        self.moved.append(node)
        return 1

    def _read_step(self, node: Typed) -> bool:
        """Note a function of the clock."""
        if node.op == "cast" and node.type == DATE and _is_timestamp(node.args[0]):
            self.has_breaks = True
            return self._read_rising(node.args[0]) > 0
        if node.op in _STEPS and _is_timestamp(node.args[0]):
            self.steps.append((node.args[0], _STEPS[node.op], -1))
            return self._read_rising(node.args[0]) > 0
        if node.op == "date_format" and _is_timestamp(node.args[0]):
            self.steps.append((node.args[0], _unit_of_pattern(str(node.value)), -1))
            self.has_breaks = True
            return self._read_rising(node.args[0]) > 0
        if node.op == "date_trunc" and node.args[0].op == "slot" and _is_timestamp(node.args[1]):
            self.steps.append((node.args[1], 0, node.args[0].slot))
            self.has_breaks = True
            return self._read_rising(node.args[1]) > 0
        return False

    def find_next(
        self, residual: Residual, columns: dict[str, Column], members: NDArray[np.int64], since: Integers
    ) -> Integers:
        """By pair of a row and a member of the residual: a moment after `since`, before which nothing changes.

        `columns` has one row per pair.
        """
        from vedette.language.evaluation import Evaluation

        n = len(since)
        columns = columns | {NOW: Column(since)}
        evaluation = Evaluation(
            residual.constants,
            residual.time_zone,
            columns,
            np.arange(n),
            members,
            residual.polygons,
            circles=residual.circles,
        )
        zone, nexts = Zone(residual.time_zone), np.full(n, NEVER, np.int64)
        for rising, fixed, slope in self.bounds:
            own, other = evaluation.of(rising), evaluation.of(fixed)
            distance = minus(other.values, own.values) if slope > 0 else minus(own.values, other.values)
            meets = np.where(distance > 0, distance, np.where(distance == 0, 1, NEVER))
            usable = own.usable & other.usable
            _lower(nexts, since, np.where(usable, meets, NEVER))
            _lower(nexts, since, np.where(usable & (distance > 0) & (distance < NEVER), distance + 1, NEVER))
        for time, unit, slot in self.steps:
            value = evaluation.of(time)
            units = unit if slot < 0 else _units_of(residual.constants[slot], members)
            left = units - np.mod(zone.to_locals(value.values), units)
            _lower(nexts, since, np.where(value.usable, left, MICROS_PER_DAY))
        if self.has_breaks:
            for node in dict.fromkeys(self.moved):
                value = evaluation.of(node)
                for times in _times_on_the_way(node, value.values, evaluation):
                    _lower(nexts, since, np.where(value.usable, _find_breaks(zone, times) - times, MICROS_PER_DAY))
        return nexts


def why_not_followed(residual: Residual) -> QueryError | None:
    """The error of a residual that border monitoring cannot follow, or None."""
    try:
        _ = residual.now_uses
    except CannotFollowError as error:
        return QueryError(f"border monitoring cannot follow now() in {error}; {_ADVICE}")
    return None


def _uses_now(node: Typed) -> bool:
    return any(each.op == "field" and each.name == NOW for each in node.walk())


def _is_timestamp(node: Typed) -> bool:
    return node.type == TIMESTAMP and _is_rising(node)


def _is_rising(node: Typed) -> bool:
    """Whether a node is now() moved by something fixed, or its distance from something fixed."""
    if node.op == "field":
        return node.name == NOW
    if node.op == "cast" and node.type == TIMESTAMP_NTZ:
        return _is_timestamp(node.args[0])
    if node.op == _DIFFERENCE:
        return sum(map(_uses_now, node.args)) == 1 and any(map(_is_timestamp, node.args))
    is_moved = node.op.startswith(("timestamp + ", "timestamp - ")) and node.op.endswith(("interval", "days", "months"))
    return is_moved and _is_timestamp(node.args[0]) and not _uses_now(node.args[1])


def _unit_of_pattern(pattern: str) -> int:
    """The unit in which a formatted time changes."""
    if set("SnNA") & set(pattern):
        raise CannotFollowError("date_format with fractions of a second")
    for letters, unit in (("s", _SECOND), ("m", _MINUTE), ("HhKka", _HOUR)):
        if set(letters) & set(pattern):
            return unit
    return MICROS_PER_DAY


def _units_of(texts: Any, members: NDArray[np.int64]) -> Integers:
    distinct = {text: number for number, text in enumerate(pc.unique(texts).to_pylist())}
    units = np.array([_TRUNCATED.get(str(text).lower(), MICROS_PER_DAY) for text in distinct], np.int64)
    codes = pc.index_in(texts.take(members), value_set=pc.unique(texts)).to_numpy(zero_copy_only=False)
    return np.asarray(units[codes.astype(np.int64)])


def _lower(nexts: Integers, since: Integers, distances: Any) -> None:
    """Lower the next moments to those at some distance, NEVER for none."""
    moments = minus(since, minus(np.int64(0), distances))
    np.minimum(nexts, np.where(distances == NEVER, NEVER, moments), out=nexts)


def _times_on_the_way(node: Typed, values: Integers, evaluation: Any) -> list[Integers]:
    """The value of a moved timestamp, and the value after its days and before the rest of the interval."""
    if not node.op.endswith("interval"):
        return [values]
    amounts = evaluation.of(node.args[1]).values
    amounts = -amounts if " - " in node.op else amounts
    rest = np.sign(amounts) * np.mod(np.abs(amounts), MICROS_PER_DAY)
    return [values, minus(values, rest), minus(values, np.mod(amounts, MICROS_PER_DAY))]


def _find_breaks(zone: Zone, instants: Integers) -> Integers:
    """The next instant after each at which the clocks change, or an effect of it ends, or a day begins."""
    days, back = np.unique(np.floor_divide(instants, MICROS_PER_DAY), return_inverse=True)
    found = np.empty(len(instants), np.int64)
    for number, day in enumerate(days.tolist()):
        own = np.flatnonzero(back == number)
        breaks = np.array(_breaks_of_day(zone, day), np.int64)
        found[own] = breaks[np.searchsorted(breaks, instants[own], side="right")]
    return found


@lru_cache(maxsize=20_000)
def _breaks_of_day(zone: Zone, day: int) -> tuple[int, ...]:
    """The breaks of a day in UTC, in order; the last is its end."""
    start, end = day * MICROS_PER_DAY, (day + 1) * MICROS_PER_DAY
    breaks = {end}
    for each in (day - 1, day):
        change = _find_change(zone, each)
        if change is not None:
            size = abs(zone.offset(change) - zone.offset(change - 1)) * MICROS_PER_SECOND
            breaks |= {change, change + size}
    first = zone.to_local(start) // MICROS_PER_DAY
    breaks |= {zone.midnight(local) for local in range(first, first + 3)}
    return tuple(sorted(min(each, NEVER) for each in breaks if start < each <= end))


def _find_change(zone: Zone, day: int) -> int | None:
    """The instant of a day at which the clocks change, or None."""
    early, late = day * 86_400, (day + 1) * 86_400
    offset = zone.offset(early * MICROS_PER_SECOND)
    if offset == zone.offset(late * MICROS_PER_SECOND):
        return None
    while late - early > 1:
        middle = (early + late) // 2
        if zone.offset(middle * MICROS_PER_SECOND) == offset:
            early = middle
        else:
            late = middle
    return late * MICROS_PER_SECOND
