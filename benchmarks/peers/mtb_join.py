"""Contestants of the moving join: the algorithms of Zhang et al. and ours, over the same sets and updates.

The algorithms of the paper only find pairs. Ours also stores them, and lists the current ones after each update, within
its time. Data that a contestant stores for checks is stored outside the timing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import vedette as vd
from benchmarks.moving_sets import Step
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving import ETPJoin, Moment, MTBJoin, NaiveJoin, Pairs, Tally, TCJoin, tp_join
from vedette.papers.moving.paired_trees import PairedTrees, change_trees

Keys = NDArray[np.int64]  # pairs, each as one number


class MovingPeer(ABC):
    """Two sets from a time on. `tally` counts the reads of algorithms with nodes."""

    name: ClassVar[str]
    most: ClassVar[dict[str, int]] = {}  # objects per set, by work, above which it would take minutes

    tally: Tally | None = None
    knows_later: ClassVar[bool] = (
        True  # after `initial`, it has the pairs up to the interval, not only the current ones
    )

    @abstractmethod
    def initial(self) -> Any:
        """The timed part: the pairs of all objects."""

    @abstractmethod
    def warm(self, step: Step) -> None:
        """Apply updates without finding pairs, if possible."""

    def begin(self) -> None:  # noqa: B027  ours has found them
        """Find the pairs that were skipped while warming up."""

    @abstractmethod
    def step(self, step: Step) -> Any:
        """The timed part: the updates of a timestamp."""

    @abstractmethod
    def keep(self, step: Step | None, found: Any) -> None:
        """Store the result of `initial` or `step`, for `current`."""

    @abstractmethod
    def current(self, time: float) -> Keys:
        """The pairs that intersect, from the stored results."""


class TreePeer(MovingPeer):
    """An algorithm over trees, and all pairs that it has emitted and that are still valid."""

    def __init__(self, join: PairedTrees) -> None:
        self.join, self.tally = join, join.tally
        self.emitted = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0))

    def initial(self) -> Pairs:
        return self.join.initial_pairs()

    def warm(self, step: Step) -> None:
        warm_trees(self.join, step)

    def begin(self) -> None:
        self.keep(None, self.initial())

    def step(self, step: Step) -> Pairs:
        return self.join.update(step.time, step.a_places, step.a_motions, step.b_places, step.b_motions)

    def keep(self, step: Step | None, found: Pairs) -> None:
        emitted = self.emitted
        if step is not None:
            is_good = ~np.isin(emitted.a, step.a_places) & ~np.isin(emitted.b, step.b_places)
            kept = Pairs(emitted.a[is_good], emitted.b[is_good], emitted.starts[is_good], emitted.ends[is_good])
            found = Pairs(*(np.concatenate(columns) for columns in zip(*[kept, found], strict=True)))
        self.emitted = found

    def current(self, time: float) -> Keys:
        is_on = (self.emitted.starts <= time) & (time <= self.emitted.ends)
        return _keys(self.emitted.a[is_on], self.emitted.b[is_on])


class NaivePeer(TreePeer):
    name = "NaiveJoin"
    most: ClassVar[dict[str, int]] = {"initial": 10_000, "maintenance": 10_000}

    def __init__(self, a: Motions, b: Motions, interval: float) -> None:
        super().__init__(NaiveJoin.build(a, b, 0.0, interval))


class TCPeer(TreePeer):
    name = "TC-Join"
    most: ClassVar[dict[str, int]] = {"initial": 10_000, "maintenance": 100_000}

    def __init__(self, a: Motions, b: Motions, interval: float) -> None:
        super().__init__(TCJoin.build(a, b, 0.0, interval))


class MTBPeer(TreePeer):
    name = "MTB-Join"

    def __init__(self, a: Motions, b: Motions, interval: float, **options: Any) -> None:
        super().__init__(MTBJoin.build(a, b, 0.0, interval, **options))


class ETPPeer(MovingPeer):
    name = "ETP-Join"
    knows_later = False
    most: ClassVar[dict[str, int]] = {"initial": 10_000, "maintenance": 1_000}

    def __init__(self, a: Motions, b: Motions, interval: float) -> None:
        self.join = ETPJoin.build(a, b, 0.0, interval)
        self.tally = self.join.tally

    def initial(self) -> Any:
        return tp_join(self.join.a, self.join.b, Moment(self.join.time), self.join.tally)

    def warm(self, step: Step) -> None:
        warm_trees(self.join, step)

    def begin(self) -> None:
        self.join.answer = self.initial()

    def step(self, step: Step) -> Any:
        return self.join.update(step.time, step.a_places, step.a_motions, step.b_places, step.b_motions)

    def keep(self, step: Step | None, found: Any) -> None:
        """It has the current pairs itself."""

    def current(self, time: float) -> Keys:
        return _keys(*self.join.current_pairs())


class VedettePeer(MovingPeer):
    name = "Vedette"

    def __init__(self, a: Motions, b: Motions, interval: float) -> None:
        self.a, self.b = as_rows(np.arange(len(a)), a), as_rows(np.arange(len(b)), b)
        self.moving = vd.MovingJoin(max_update_interval=interval)
        self.moving.load(a=self.a, b=self.b, time=0)

    def initial(self) -> Any:
        self.moving.load(a=self.a, b=self.b, time=0)
        return self.moving.pairs(at=0)

    def warm(self, step: Step) -> None:
        self.step(step)

    def step(self, step: Step) -> Any:
        a, b = as_rows(step.a_places, step.a_motions), as_rows(step.b_places, step.b_motions)
        self.moving.update(a=a, b=b, time=step.time)
        return self.moving.pairs(at=step.time)

    def keep(self, step: Step | None, found: Any) -> None:
        """It has all pairs itself."""

    def current(self, time: float) -> Keys:
        pairs = self.moving.pairs(at=time)
        return _keys(*(pairs.column(name).to_numpy() for name in ("a", "b")))


Make = Callable[[Motions, Motions, float], MovingPeer]


def warm_trees(join: PairedTrees | ETPJoin, step: Step) -> None:
    """Apply updates to trees without finding their pairs."""
    change_trees(join.a, step.a_places, step.a_motions, None, step.time)
    change_trees(join.b, step.b_places, step.b_motions, None, step.time)
    join.time = step.time


def as_rows(places: NDArray[Any], motions: Motions) -> dict[str, NDArray[Any]]:
    """Motions, all as of one time, in the columns of our join."""
    columns: dict[str, NDArray[Any]] = {"id": places}
    for d, axis in enumerate("xyz"[: motions.n_dims]):
        columns |= {f"{axis}_low": motions.lows[d], f"{axis}_high": motions.highs[d]}
        columns |= {f"v{axis}_low": motions.low_speeds[d], f"v{axis}_high": motions.high_speeds[d]}
    return columns


def _keys(a: NDArray[Any], b: NDArray[Any]) -> Keys:
    return np.sort((np.asarray(a, np.int64) << 32) | np.asarray(b, np.int64))
