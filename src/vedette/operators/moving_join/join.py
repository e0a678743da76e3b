"""The continuous intersection join by default: time-constrained (section 5.2), over two grids of swept boxes.

An object is looked at from its update until its deadline, and a pair until the earlier of both deadlines: Theorem 2 for
one object at a time, the strictest bound there is. An update takes the pairs of its old motion away and finds those of
its new one, both by a look-up in the grid of the other set: what a look-up finds depends on nothing but the motions, to
the last bit, and so no pair need be kept by object to be taken back.

Pairs are kept only after `start`, and only so that they can be listed. The changes of a step do not need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
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


class IntersectionJoin:
    """Two sets, and the pairs that meet from now on, as far as objects are looked at."""

    def __init__(self, a: MovingSet, b: MovingSet, now: float) -> None:
        self.a, self.b = a, b
        self.now = now
        self.calendar: PairCalendar | None = None  # of all pairs, from `start` on
        self._waiting: list[tuple[Any, ...]] = []  # what the calendar has still to be told
        self._before: tuple[Any, ...] = ()  # what `take_back` brings back
        self.rates = UpdateRates(), UpdateRates()

    @property
    def sets(self) -> tuple[MovingSet, MovingSet]:
        return self.a, self.b

    @property
    def nbytes(self) -> int:
        return self.a.nbytes + self.b.nbytes + self.pair_nbytes

    @property
    def n_pairs(self) -> int:
        return len(self._kept())

    @property
    def pair_nbytes(self) -> int:
        """The memory of the pairs that are kept."""
        return 0 if self.calendar is None else self.calendar.nbytes

    def start(self) -> Meetings:
        """Find all pairs anew, the initial join, and keep them from here on."""
        if len(self.a) < len(self.b):
            pairs = self.b.meet(self.a, self.b.living, self.now).swapped()
        else:
            pairs = self.a.meet(self.b, self.a.living, self.now)
        self.calendar, self._waiting = PairCalendar(self.now, self.a.interval), []
        self._present(_NOBODY, 0, pairs)
        return pairs

    def step(self, time: float, a: Step, b: Step) -> list[tuple[int, Meetings]]:
        """Let time pass, and change both sets: how the pairs change, with signs, first what is retracted.

        A pair that is retracted and emitted again with the same interval is left out.
        """
        renewed = self._renew(time)
        self.now = time
        self._advance(time)
        known = self._known(self.a, a, self.rates[0]), self._known(self.b, b, self.rates[1])
        old = self._meetings_of(known, time)
        put = []
        for each, of in ((a, self.a), (b, self.b)):
            if len(each.removed):
                of.remove(each.removed, each.removed_reported)
            put.append(of.put(each.ids, each.rows, each.reported, time) if len(each.rows) else _NONE)
        new = self._meetings_of((put[0], put[1]), time)
        self._present(known, len(old), new)
        retracted, emitted = differ(old, new, time)
        changes = [(-1, retracted), (1, _cut(old, time)), (1, emitted)]
        return net([*renewed, *changes]) if renewed else changes

    def has_ended(self, time: float) -> bool:
        """Whether a step to this time renews objects."""
        return any(len(of.find_ended(time)) for of in self.sets)

    def at(self, time: float) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The slots of all pairs that intersect at a time, not before now, if no object updates until then."""
        a, b = self._kept().at(time)
        if time == self.now:
            return a, b
        later = self._at_unseen(time)
        return (np.concatenate([a, later.a]), np.concatenate([b, later.b])) if len(later) else (a, b)

    def upcoming(self) -> tuple[Meetings, NDArray[np.bool_]]:
        """All pairs, and which of them do end when it is said, and are not only looked at no longer."""
        pairs = self._kept().all()
        covers = []
        for of, slots in ((self.a, pairs.a), (self.b, pairs.b)):
            ends = of.rows[: len(of.ids), UNTIL]
            covers.append(np.where(vanishing_times(of.rows[: len(of.ids)]) <= ends, np.inf, ends)[slots])
        return pairs, pairs.ends < np.minimum(*covers)

    def traffic(self) -> Traffic:
        """What the cost of an update interval depends on, as seen so far; of a sample of the objects."""
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
            stands=(self.a.stands, self.b.stands),
        )

    def begin_change(self) -> None:
        """From here on steps can be taken back, until `end_change`."""
        self._before = self.now, *(each.to_numbers() for each in self.rates)
        for of in self.sets:
            of.begin_change()

    def end_change(self) -> None:
        """Keep what the steps have changed."""
        self._settle()
        for of in self.sets:
            of.end_change()

    def take_back(self) -> None:
        """Be as before `begin_change`."""
        self._waiting = []
        self.now, *rates = self._before
        for each, numbers in zip(self.rates, rates, strict=True):
            each.set_numbers(*numbers)
        for of in self.sets:
            of.take_back()

    def pack(self) -> None:
        """Give up the slots of objects that are gone, once they are most."""
        moved = [of.pack(self.now) for of in self.sets]
        if self.calendar is not None and (moved[0] is not None or moved[1] is not None):
            same = (np.arange(len(of.ids), dtype=np.int32) for of in self.sets)
            self.calendar.rename([old if new is None else new for new, old in zip(moved, same, strict=True)])

    def _known(self, of: MovingSet, step: Step, rates: UpdateRates) -> NDArray[np.int32]:
        """The slots of objects that are there before a step and are changed by it."""
        if not len(step.rows) and not len(step.removed):
            return _NONE
        slots = of.find(step.ids)
        slots = slots[slots >= 0]
        if not of.stands and len(slots):
            rates.note(self.now - of.rows[slots, TIME], of.interval)
        if not len(step.removed):
            return slots
        removed = of.find(step.removed)
        return np.concatenate([slots, removed[removed >= 0]])

    def _renew(self, time: float) -> list[tuple[int, Meetings]]:
        """Look for as long again at objects that end before a time. Most of what they meet stays as it is."""
        ended = self.a.find_ended(time), self.b.find_ended(time)
        if not len(ended[0]) and not len(ended[1]):
            return []
        gone = self._meetings_of(ended, self.now)
        for slots, of in zip(ended, self.sets, strict=True):
            of.look_at(slots, time, self.now)
        come = self._meetings_of(ended, self.now)
        self._advance(time)
        self._present(ended, len(gone), come)
        gone, come = differ(gone, come)
        return [(-1, gone), (1, come)] if len(gone) or len(come) else []

    def _meetings_of(self, slots: tuple[NDArray[np.int32], NDArray[np.int32]], since: float) -> Meetings:
        """The pairs in which some of the a or some of the b are, each once."""
        of_a = self.a.meet(self.b, slots[0], since)
        of_b = self.b.meet(self.a, slots[1], since, left_out=slots[0]).swapped()
        return Meetings.concat([each for each in (of_a, of_b) if len(each)])

    def _kept(self) -> PairCalendar:
        assert self.calendar is not None, "start keeps the pairs"
        self._settle()
        return self.calendar

    def _present(self, known: tuple[NDArray[np.int32], NDArray[np.int32]], n_gone: int, come: Meetings) -> None:
        if self.calendar is not None:
            self._waiting.append((len(self.a.ids), len(self.b.ids), known, n_gone, come))

    def _advance(self, time: float) -> None:
        if self.calendar is not None:
            self._waiting.append((time,))

    def _settle(self) -> None:
        """Tell the calendar what it was not told yet, in order. It cannot be taken back."""
        waiting, self._waiting = self._waiting, []
        for each in waiting if self.calendar is not None else ():
            assert self.calendar is not None
            if len(each) == 1:
                self.calendar.advance(*each)
                continue
            n_a, n_b, known, n_gone, come = each
            self.calendar.begin_step(n_a, n_b)
            self.calendar.remove(known, n_gone)
            self.calendar.add(come)
            self.calendar.end_step()

    def _at_unseen(self, time: float) -> Meetings:
        """The pairs at a time of objects that will not have been looked at for so long."""
        unseen = self.a.unseen(time), self.b.unseen(time)
        if not len(unseen[0]) and not len(unseen[1]):
            return Meetings.empty()
        a_rows, a_slots = self.a.rows_until(time, unseen[0])
        b_rows, b_slots = self.b.rows_until(time, unseen[1])
        is_left_out = np.zeros(max(len(a_rows), len(b_rows)), np.bool_)
        of_a = SweptGrid.build(b_rows, b_slots, time).find(a_rows, unseen[0], b_rows, is_left_out, time)
        is_left_out[unseen[0]] = True
        of_b = SweptGrid.build(a_rows, a_slots, time).find(b_rows, unseen[1], a_rows, is_left_out, time)
        return Meetings.concat([of_a, of_b.swapped()])


def _cut(gone: Meetings, time: float) -> Meetings:
    """What has been true of pairs that go at a time: until just before it."""
    begun = gone.take(gone.starts < time)
    return Meetings(begun.a, begun.b, begun.starts, np.full(len(begun), np.nextafter(time, -np.inf)))


_NONE = np.empty(0, np.int32)
_NOBODY = (_NONE, _NONE)
