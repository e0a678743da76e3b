"""ETP-Join: TP-Join repeated at every change of the answer, which makes it continuous.

Section 4 of Zhang et al., Figure 9: the best algorithm before their work. Every pair that enters or leaves costs a
descent of both trees. An update costs a descent of the other tree, to see whether the object changes the answer before
the next known change. The printed algorithm does not notice an update that invalidates the next change itself; here the
next change is then searched for again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.naive_join import plant_trees
from vedette.papers.moving.paired_trees import change_trees
from vedette.papers.moving.tally import Tally
from vedette.papers.moving.tp_join import Moment, TPAnswer, tp_join
from vedette.papers.moving.tpr_star_tree import CAPACITY, TPRStarTree


class ResultChanges(NamedTuple):
    """Pairs that entered (1) and left (-1) the answer, and when; a pair that ends at a time leaves right after it."""

    signs: NDArray[np.int8]
    a: NDArray[np.int32]
    b: NDArray[np.int32]
    times: NDArray[np.float64]


@dataclass
class ETPJoin:
    """The current answer and its next change. It knows no intervals: `advance` reports the changes until a time."""

    a: TPRStarTree
    b: TPRStarTree
    time: float
    tally: Tally
    answer: TPAnswer
    n_runs: int = 0  # runs of TP-Join on both trees
    _log: list[ResultChanges] = field(default_factory=list)

    @classmethod
    def build(
        cls, a: Motions, b: Motions, time: float, max_update_interval: float, *, capacity: int = CAPACITY
    ) -> Self:
        """Build the join from two sets at a time. Trees are optimised for the interval; answers do not depend on it."""
        tally = Tally.make()
        trees = plant_trees(a, b, time, max_update_interval, capacity)
        answer = tp_join(*trees, Moment(time), tally)
        return cls(*trees, time, tally, answer, 1)

    def current_pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The pairs that intersect at the current time."""
        return self.answer.a, self.answer.b

    def advance(self, time: float) -> ResultChanges:
        """Advance to a time; the pairs that entered up to then, and those that left before."""
        if time < self.time:
            raise ValueError(f"time runs backwards: got {time:g} after {self.time:g}")
        while self.answer.expiry <= Moment(time):
            self._pass_change()
        self.time = time
        return self._take_log()

    def update(
        self,
        time: float,
        a_places: NDArray[np.int32],
        a_motions: Motions,
        b_places: NDArray[np.int32],
        b_motions: Motions,
        a_gone: NDArray[np.int32] | None = None,
        b_gone: NDArray[np.int32] | None = None,
    ) -> ResultChanges:
        """Advance to a time, then apply new motions and removals; all pairs that entered and left."""
        passed = self.advance(time)
        a_leaving = change_trees(self.a, a_places, a_motions, a_gone, time)
        b_leaving = change_trees(self.b, b_places, b_motions, b_gone, time)
        answer, moment = self.answer, Moment(time)
        is_void = np.isin(answer.a, a_leaving) | np.isin(answer.b, b_leaving)
        is_next_void = (np.isin(answer.a_changes, a_leaving) | np.isin(answer.b_changes, b_leaving)).any()
        self._note(-1, answer.a[is_void], answer.b[is_void], time)
        kept = answer.a[~is_void], answer.b[~is_void]
        answers = [self._ask(place, a_motions.take(np.array([i])), True) for i, place in enumerate(a_places)]
        answers += [self._ask(place, b_motions.take(np.array([i])), False) for i, place in enumerate(b_places)]
        entered = np.unique(
            np.concatenate([np.empty((0, 2), np.int32), *(np.stack([one.a, one.b], axis=1) for one in answers)]), axis=0
        )
        self._note(1, entered[:, 0], entered[:, 1], time)
        a, b = np.concatenate([kept[0], entered[:, 0]]), np.concatenate([kept[1], entered[:, 1]])
        nexts = [TPAnswer(a, b, answer.expiry, answer.a_changes, answer.b_changes), *answers]
        if is_next_void:
            self.n_runs += 1
            nexts = [tp_join(self.a, self.b, moment, self.tally, with_pairs=False)]
        expiry = min(one.expiry for one in nexts)
        changes = [np.stack([one.a_changes, one.b_changes], axis=1) for one in nexts if one.expiry == expiry]
        both = np.unique(np.concatenate(changes), axis=0)
        self.answer = TPAnswer(a, b, expiry, both[:, 0], both[:, 1])
        updated = self._take_log()
        return ResultChanges(*(np.concatenate(columns) for columns in zip(*[passed, updated], strict=True)))

    def _ask(self, place: int, motion: Motions, is_a: bool) -> TPAnswer:
        """TP-Join of one object, as a tree with one entry, with the other tree."""
        others = self.b if is_a else self.a
        one = TPRStarTree.make(motion.n_dims, others.rules.horizon, others.rules.sides, 4, number=2 + is_a)
        one.insert(np.array([place], np.int32), motion, self.time)
        trees = (one, others) if is_a else (others, one)
        return tp_join(*trees, Moment(self.time), self.tally)

    def _pass_change(self) -> None:
        """Move to the answer after the next change, and find the change after that."""
        answer = self.answer
        a, b, expiry = answer.a, answer.b, answer.expiry
        if expiry.is_after:
            is_left = _is_among(a, b, answer.a_changes, answer.b_changes)
            a, b = a[~is_left], b[~is_left]
        else:
            a, b = np.concatenate([a, answer.a_changes]), np.concatenate([b, answer.b_changes])
        self._note(-1 if expiry.is_after else 1, answer.a_changes, answer.b_changes, expiry.time)
        self.n_runs += 1
        following = tp_join(self.a, self.b, expiry, self.tally, with_pairs=False)
        self.answer = TPAnswer(a, b, following.expiry, following.a_changes, following.b_changes)

    def _note(self, sign: int, a: NDArray[np.int32], b: NDArray[np.int32], time: float) -> None:
        self._log.append(ResultChanges(np.full(len(a), sign, np.int8), a, b, np.full(len(a), time)))

    def _take_log(self) -> ResultChanges:
        none = ResultChanges(np.empty(0, np.int8), np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0))
        changes = ResultChanges(*(np.concatenate(columns) for columns in zip(none, *self._log, strict=True)))
        self._log.clear()
        return changes


def _is_among(
    a: NDArray[np.int32], b: NDArray[np.int32], a_some: NDArray[np.int32], b_some: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Which pairs are among the others."""
    some = (a_some.astype(np.int64) << 32) | b_some
    return np.isin((a.astype(np.int64) << 32) | b, some)
