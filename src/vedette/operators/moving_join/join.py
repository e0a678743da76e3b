"""The continuous intersection join: time-constrained (section 5.2), over two grids of swept boxes.

An object is used from its update until its deadline, and a pair until the earlier of both deadlines: Theorem 2 for one
object at a time, which is the strictest bound. An update retracts the pairs of its old motion and emits those of its
new one. Both are found by a look-up in the grid of the other set. The result of a look-up depends only on the motions,
to the last bit, so pairs need not be stored to be retracted.

Pairs are stored only after `start`, to list them. The changes of a step do not need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.operators.moving_join.grid import SweptGrid
from vedette.operators.moving_join.interval import SAMPLE, Traffic, UpdateRates
from vedette.operators.moving_join.meetings import Meetings, differ, net
from vedette.operators.moving_join.motion_rows import TIME, UNTIL, to_motions, vanishing_times
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.pair_calendar import PairCalendar


@dataclass(frozen=True)
class Step:
    """What changes in one set at a moment: ids with new rows, and ids of removed objects. All ids are distinct."""

    ids: Any  # NDArray[np.int64] or pa.LargeStringArray
    rows: NDArray[np.float64]
    reported: NDArray[np.float64]  # the time that each row reports
    removed: Any  # ids
    removed_reported: NDArray[np.float64]
    carried: pa.Table | None = None  # the columns of the rows that answers carry


class IntersectionJoin:
    """Two sets, and the pairs that intersect from now on, up to the deadlines of their objects."""

    def __init__(self, a: MovingSet, b: MovingSet, now: float) -> None:
        self.a, self.b = a, b
        self.now = now
        self.calendar: PairCalendar | None = None  # the pairs, after `start`
        self._queue: list[tuple[Any, ...]] = []  # changes that the calendar does not have yet
        self._before: tuple[Any, ...] = ()  # what `undo` restores
        self.rates = UpdateRates(), UpdateRates()
        self.replaced = _NOTHING_REPLACED  # by set: the slots that the last step changed, and where their rows were

    @property
    def sets(self) -> tuple[MovingSet, MovingSet]:
        return self.a, self.b

    @property
    def nbytes(self) -> int:
        return self.a.nbytes + self.b.nbytes + self.pair_nbytes

    @property
    def n_pairs(self) -> int:
        return len(self._updated_calendar())

    @property
    def pair_nbytes(self) -> int:
        """The memory of the stored pairs."""
        return 0 if self.calendar is None else self.calendar.nbytes

    def start(self) -> Meetings:
        """Find all pairs (the initial join), and store pairs from now on."""
        if len(self.a) < len(self.b):
            pairs = self.b.meet(self.a, self.b.living, self.now).swapped()
        else:
            pairs = self.a.meet(self.b, self.a.living, self.now)
        self.calendar, self._queue = PairCalendar(self.now, self.a.interval), []
        self.replaced = _NOTHING_REPLACED
        self._queue_pairs(_NO_SLOTS, 0, pairs)
        return pairs

    def step(self, time: float, a: Step, b: Step) -> list[tuple[int, Meetings]]:
        """Advance time, and change both sets: how the pairs change, with signs, retractions first.

        A pair that is retracted and emitted again with the same interval is left out.
        """
        renewed = self._renew(time)
        self.now = time
        self._queue_time(time)
        known = self._known(self.a, a, self.rates[0]), self._known(self.b, b, self.rates[1])
        old = self._meetings_of(known, time)
        self.replaced = _replaced(self.a, known[0]), _replaced(self.b, known[1])
        put = []
        for each, of in ((a, self.a), (b, self.b)):
            if len(each.removed):
                of.remove(each.removed, each.removed_reported)
            is_put = len(each.rows) > 0
            put.append(of.put(each.ids, each.rows, each.reported, time, each.carried) if is_put else _NONE)
        new = self._meetings_of((put[0], put[1]), time)
        self._queue_pairs(known, len(old), new)
        retracted, emitted = differ(old, new, time)
        changes = [(-1, retracted), (1, _cut(old, time)), (1, emitted)]
        return net([*renewed, *changes]) if renewed else changes

    def has_ended(self, time: float) -> bool:
        """Whether a step to this time renews objects."""
        return any(len(of.find_ended(time)) for of in self.sets)

    def at(self, time: float) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The slots of all pairs that intersect at a time, not before now, if no object updates until then."""
        a, b = self._updated_calendar().at(time)
        if time == self.now:
            return a, b
        later = self._at_ended(time)
        return (np.concatenate([a, later.a]), np.concatenate([b, later.b])) if len(later) else (a, b)

    def upcoming(self) -> tuple[Meetings, NDArray[np.bool_]]:
        """All pairs, and whether each really ends at its end, which may also be only the deadline of an object."""
        pairs = self._updated_calendar().all()
        return pairs, self._end_so(pairs)

    def pairs_of(self, slots: NDArray[np.int32]) -> tuple[Meetings, NDArray[np.bool_]]:
        """As `upcoming`, of some objects of a. Stored pairs are not needed."""
        pairs = self.a.meet(self.b, slots, self.now)
        return pairs, self._end_so(pairs)

    def _end_so(self, pairs: Meetings) -> NDArray[np.bool_]:
        covers = []
        for of, slots in ((self.a, pairs.a), (self.b, pairs.b)):
            rows = of.rows[slots]
            covers.append(np.where(vanishing_times(rows) <= rows[:, UNTIL], np.inf, rows[:, UNTIL]))
        ends_so: NDArray[np.bool_] = pairs.ends < np.minimum(*covers)
        return ends_so

    def traffic(self) -> Traffic:
        """What the cost of an update interval depends on, measured so far and on a sample of the objects."""
        sizes, speeds, samples, lows, highs = [], [], [], [], []
        for of in self.sets:
            motions = to_motions(of.rows[of.living[:: -(-max(len(of), 1) // SAMPLE)]])
            low, high = motions.at(self.now)
            middle = (motions.low_speeds + motions.high_speeds) / 2
            sizes.append(np.maximum(high - low, 0.0).mean(axis=1))
            speeds.append(np.abs(middle).mean(axis=1))
            samples.append(middle)
            lows.append(low.min(axis=1))
            highs.append(high.max(axis=1))
        n = min(sample.shape[1] for sample in samples)
        rates = [
            each.rate(float((self.now - of.rows[of.living, TIME]).sum()))
            for each, of in zip(self.rates, self.sets, strict=True)
        ]
        return Traffic(
            n=(len(self.a), len(self.b)),
            sizes=np.stack(sizes),
            speeds=np.stack(speeds),
            relative_speeds=np.abs(samples[0][:, :n] - samples[1][:, :n]).mean(axis=1),
            n_pairs=len(self.at(self.now)[0]),
            extents=np.maximum(*highs) - np.minimum(*lows),
            rates=(rates[0], rates[1]),
            is_static=(self.a.is_static, self.b.is_static),
        )

    def begin_change(self) -> None:
        """Steps can be undone from now on, until `end_change`."""
        self._before = self.now, *(each.to_numbers() for each in self.rates)
        for of in self.sets:
            of.begin_change()

    def end_change(self) -> None:
        """Commit the steps."""
        self._update_calendar()
        for of in self.sets:
            of.end_change()

    def undo(self) -> None:
        """Restore the state before `begin_change`."""
        self._queue = []
        self.now, *rates = self._before
        for each, numbers in zip(self.rates, rates, strict=True):
            each.set_numbers(*numbers)
        for of in self.sets:
            of.undo()

    def pack(self) -> None:
        """Drop the slots of removed objects once they are the majority."""
        moved = [of.pack(self.now) for of in self.sets]
        if self.calendar is not None and (moved[0] is not None or moved[1] is not None):
            same = (np.arange(len(of.ids), dtype=np.int32) for of in self.sets)
            self.calendar.rename([old if new is None else new for new, old in zip(moved, same, strict=True)])

    def _known(self, of: MovingSet, step: Step, rates: UpdateRates) -> NDArray[np.int32]:
        """The slots of existing objects that a step changes."""
        if not len(step.rows) and not len(step.removed):
            return _NONE
        slots = of.find(step.ids)
        slots = slots[slots >= 0]
        if not of.is_static and len(slots):
            rates.note(self.now - of.rows[slots, TIME], of.interval)
        if not len(step.removed):
            return slots
        removed = of.find(step.removed)
        return np.concatenate([slots, removed[removed >= 0]])

    def _renew(self, time: float) -> list[tuple[int, Meetings]]:
        """Extend objects that end before a time. Most of their pairs stay the same."""
        ended = self.a.find_ended(time), self.b.find_ended(time)
        if not len(ended[0]) and not len(ended[1]):
            return []
        old = self._meetings_of(ended, self.now)
        for slots, of in zip(ended, self.sets, strict=True):
            of.set_ends(slots, time, self.now)
        new = self._meetings_of(ended, self.now)
        self._queue_time(time)
        self._queue_pairs(ended, len(old), new)
        retracted, emitted = differ(old, new)
        return [(-1, retracted), (1, emitted)] if len(retracted) or len(emitted) else []

    def _meetings_of(self, slots: tuple[NDArray[np.int32], NDArray[np.int32]], since: float) -> Meetings:
        """The pairs of some objects of a or b, each once."""
        of_a = self.a.meet(self.b, slots[0], since)
        of_b = self.b.meet(self.a, slots[1], since, left_out=slots[0]).swapped()
        return Meetings.concat([each for each in (of_a, of_b) if len(each)])

    def _updated_calendar(self) -> PairCalendar:
        assert self.calendar is not None, "`start` comes first"
        self._update_calendar()
        return self.calendar

    def _queue_pairs(self, known: tuple[NDArray[np.int32], NDArray[np.int32]], n_removed: int, new: Meetings) -> None:
        if self.calendar is not None:
            self._queue.append((len(self.a.ids), len(self.b.ids), known, n_removed, new))

    def _queue_time(self, time: float) -> None:
        if self.calendar is not None:
            self._queue.append((time,))

    def _update_calendar(self) -> None:
        """Apply the queued changes to the calendar, in order. This cannot be undone."""
        queue, self._queue = self._queue, []
        for each in queue if self.calendar is not None else ():
            assert self.calendar is not None
            if len(each) == 1:
                self.calendar.advance(*each)
                continue
            n_a, n_b, known, n_removed, new = each
            self.calendar.begin_step(n_a, n_b)
            self.calendar.remove(known, n_removed)
            self.calendar.add(new)
            self.calendar.end_step()

    def _at_ended(self, time: float) -> Meetings:
        """The pairs at a time of objects whose rows end before it."""
        ended = self.a.ending_before(time), self.b.ending_before(time)
        if not len(ended[0]) and not len(ended[1]):
            return Meetings.empty()
        a_rows, a_slots = self.a.rows_until(time, ended[0])
        b_rows, b_slots = self.b.rows_until(time, ended[1])
        is_left_out = np.zeros(max(len(a_rows), len(b_rows)), np.bool_)
        of_a = SweptGrid.build(b_rows, b_slots, time).find(a_rows, ended[0], b_rows, is_left_out, time)
        is_left_out[ended[0]] = True
        of_b = SweptGrid.build(a_rows, a_slots, time).find(b_rows, ended[1], a_rows, is_left_out, time)
        return Meetings.concat([of_a, of_b.swapped()])


def _cut(retracted: Meetings, time: float) -> Meetings:
    """The past part of pairs that are retracted at a time: until just before it."""
    begun = retracted.take(retracted.starts < time)
    return Meetings(begun.a, begun.b, begun.starts, np.full(len(begun), np.nextafter(time, -np.inf)))


def _replaced(of: MovingSet, slots: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    return (slots, of.carried.places(slots)) if of.carried else _NOTHING_REPLACED[0]


_NONE = np.empty(0, np.int32)
_NOTHING_REPLACED = ((_NONE, np.empty(0, np.int64)), (_NONE, np.empty(0, np.int64)))
_NO_SLOTS = (_NONE, _NONE)
