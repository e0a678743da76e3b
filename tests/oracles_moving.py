"""Moving rectangles in plain Python and exact fractions: which pairs intersect, when, and what has been emitted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf


@dataclass(frozen=True)
class Motion:
    """`sides` are (low, high, low speed, high speed), one for each dimension."""

    time: float
    sides: tuple[tuple[float, float, float, float], ...]

    def at(self, time):
        passed = Fraction(time) - Fraction(self.time)
        return [
            (Fraction(low) + Fraction(low_speed) * passed, Fraction(high) + Fraction(high_speed) * passed)
            for low, high, low_speed, high_speed in self.sides
        ]


def intersect_at(a, b, time):
    """Whether two motions intersect at a time. A motion whose sides have crossed intersects nothing."""
    return all(
        a_low <= a_high and b_low <= b_high and a_low <= b_high and b_low <= a_high
        for (a_low, a_high), (b_low, b_high) in zip(a.at(time), b.at(time), strict=True)
    )


def meet(a, b, start, end=inf):
    """The first and the last moment in [start, end] at which two motions intersect, or None."""
    first, last = Fraction(start), end if end == inf else Fraction(end)
    for (a_low, a_high), (b_low, b_high), a_side, b_side in zip(
        a.at(start), b.at(start), a.sides, b.sides, strict=True
    ):
        for gap, speed in (
            (a_high - b_low, Fraction(a_side[3]) - Fraction(b_side[2])),
            (b_high - a_low, Fraction(b_side[3]) - Fraction(a_side[2])),
            (a_high - a_low, Fraction(a_side[3]) - Fraction(a_side[2])),
            (b_high - b_low, Fraction(b_side[3]) - Fraction(b_side[2])),
        ):
            if speed == 0:
                if gap < 0:
                    return None
            elif speed > 0:
                first = max(first, Fraction(start) - gap / speed)
            else:
                last = min(last, Fraction(start) - gap / speed)
    return (first, last) if first <= last else None


@dataclass
class World:
    """All objects: by set and id, the motions in time order; None marks a removal."""

    interval: float
    expires: bool = False
    stands: str | None = None
    moves: dict[str, dict[object, list[tuple[float, Motion | None]]]] = field(
        default_factory=lambda: {"a": {}, "b": {}}
    )

    def put(self, of, name, time, motion):
        """Add a motion, or None to remove the object. A later call for the same time replaces an earlier one."""
        known = self.moves[of].setdefault(name, [])
        if known and known[-1][0] == time:
            known.pop()
        known.append((time, motion))

    def motion_at(self, of, name, time):
        """The motion in force at a time, or None."""
        found = None
        for since, motion in self.moves[of][name]:
            if since <= time:
                found = motion
        if found is not None and self.expires and of != self.stands and time > found.time + self.interval:
            return None
        return found

    def pairs(self, time):
        """All pairs that intersect at a time, past or future, without further updates."""
        living = {
            of: [(name, motion) for name in names if (motion := self.motion_at(of, name, time)) is not None]
            for of, names in self.moves.items()
        }
        return {(a, b) for a, m in living["a"] for b, n in living["b"] if intersect_at(m, n, time)}

    def overdue(self, time):
        last = {(of, name): known[-1][1] for of, names in self.moves.items() for name, known in names.items()}
        return {
            key
            for key, motion in last.items()
            if motion is not None and key[0] != self.stands and motion.time + self.interval < time
        }

    def meetings(self):
        """The intervals of all pairs of current motions, from the later update on, without an end."""
        last = {of: {name: known[-1][1] for name, known in names.items()} for of, names in self.moves.items()}
        found = {}
        for a, m in last["a"].items():
            for b, n in last["b"].items():
                if m is not None and n is not None and (when := meet(m, n, max(m.time, n.time))):
                    found[a, b] = when
        return found


class Ledger:
    """What was emitted with sign +1 minus what was emitted with sign -1."""

    def __init__(self):
        self.lines = Counter()

    def take(self, table):
        for line in table.to_pylist():
            key = line["a"], line["b"], line["start"], line["end"]
            assert line["start"] <= line["end"]
            self.lines[key] += line["sign"]
            assert self.lines[key] in (0, 1), (line, self.lines[key])  # nothing twice, and nothing out of nothing
            if not self.lines[key]:
                del self.lines[key]

    def pairs(self, time):
        found = Counter((a, b) for a, b, start, end in self.lines if start <= time <= end)
        assert all(n == 1 for n in found.values()), found  # each pair at one moment in one line only
        return set(found)
