"""The cost of a maximum update interval, and the best of several intervals: section 7 of Zhang et al.

A short interval forces many updates; with a long one each update looks far ahead and reads many nodes. The cost is the
expected number of node accesses per timestamp: updates times reads per update. The reads are estimated from the current
trees: the probability that a query at a random place reads a node is the share of the space that the node sweeps,
relative to the query. The queries are a few synthetic updates that represent all (Zero-VBR, Expanding-MBR, Eight-VBR;
the last is the most accurate).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.mtb_join import MTBJoin
from vedette.papers.moving.mtb_tree import MTBTree
from vedette.papers.moving.nodes import USED, Nodes, find_root
from vedette.papers.moving.paired_trees import mean_sides
from vedette.papers.moving.swept_region import HIGH, HIGH_SPEED, LOW, LOW_SPEED, measure_swept

Method = Literal["zero-vbr", "expanding-mbr", "eight-vbr"]
METHODS: tuple[Method, ...] = ("zero-vbr", "expanding-mbr", "eight-vbr")


class Recommendation(NamedTuple):
    """The interval with the least cost, and the cost per timestamp of each candidate."""

    interval: float
    costs: NDArray[np.float64]


def recommend(
    candidates: Sequence[float],
    update_costs: Sequence[NDArray[np.float64]],
    n_objects: Sequence[int],
    probabilities: Sequence[float],
) -> Recommendation:
    """Section 7.3. For each set: the cost of an update with each candidate, its size, and the update probability.

    The cost of an update may be in any unit: expected accesses, or measured seconds.

    >>> recommend([10, 60, 120], [np.array([3.0, 6.0, 18.0])], [1_000], [0.01]).interval
    60.0
    """
    intervals = np.asarray(candidates, np.float64)
    if not len(intervals) or not (intervals > 0).all():
        raise ValueError(f"candidates must be intervals greater than zero; got {list(candidates)}")
    total = np.zeros(len(intervals))
    for costs, n, probability in zip(update_costs, n_objects, probabilities, strict=True):
        total += count_updates(n, probability, intervals) * costs
    return Recommendation(float(intervals[np.argmin(total)]), total)


def count_updates(n_objects: int, probability: float, intervals: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Expected updates per timestamp, voluntary and forced, after a system has run for a while.

    The time since an object's last update ends at each timestamp with the probability, and at the interval at the
    latest. The number of updates is the number of objects divided by the mean of that time. Equation 1 counts fewer if
    many updates are forced (`equation_1`), because it assumes that all objects were updated at the same time.
    """
    intervals = np.asarray(intervals, np.float64)
    if probability <= 0:
        return n_objects / intervals
    ending: NDArray[np.float64] = -np.expm1(intervals * np.log1p(-min(probability, 1 - 1e-12)))
    return n_objects * probability / ending


def equation_1(n_objects: int, probability: float, intervals: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Voluntary and forced updates per timestamp according to the paper."""
    intervals = np.asarray(intervals, np.float64)
    return n_objects * (probability + (1 - probability) ** intervals / intervals)


def estimate_probability(ages: NDArray[np.float64], interval: float) -> float:
    """The probability of a voluntary update at a timestamp, from the ages of motions that were replaced.

    A motion as old as the interval was replaced by force: it only shows that there was no voluntary update before.
    """
    is_forced = ages >= interval
    n_chances = float(np.minimum(ages, interval).sum() - is_forced.sum())
    return float((~is_forced).sum() / n_chances) if n_chances > 0 else 0.0


def equivalent_updates(method: Method, speed: float, n_dims: int) -> NDArray[np.float64]:
    """(k, 2, n_dims): the speeds of the low and the high sides of updates that represent all (section 7.2.2).

    One that does not move; one that grows on all sides; or one in each direction along axes and diagonals, which is
    eight in two dimensions.
    """
    if method == "zero-vbr":
        return np.zeros((1, 2, n_dims))
    if method == "expanding-mbr":
        return np.array([[[-speed] * n_dims, [speed] * n_dims]])
    if method == "eight-vbr":
        directions = [way for way in itertools.product((-1.0, 0.0, 1.0), repeat=n_dims) if any(way)]
        return speed * np.repeat(np.array(directions)[:, None, :], 2, axis=1)
    raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")


@dataclass
class CostModel:
    """The cost of an update of either set with candidate intervals, averaged over the observed timestamps."""

    candidates: NDArray[np.float64]
    sides: NDArray[np.float64]  # (2, n_dims): the mean sides of both sets
    updates: tuple[NDArray[np.float64], NDArray[np.float64]]  # the updates that represent those of each set
    space: float  # its area or volume
    totals: NDArray[np.float64]  # (2, n_candidates)
    n_observed: int = 0

    @classmethod
    def make(
        cls,
        candidates: Sequence[float],
        a: Motions,
        b: Motions,
        time: float,
        space: float,
        method: Method = "eight-vbr",
    ) -> Self:
        """Take sizes and speeds from the sets; `space` is the area in which the objects are."""
        sides = np.stack([mean_sides(a, time), mean_sides(b, time)])
        updates = tuple(equivalent_updates(method, mean_speed(each), each.n_dims) for each in (a, b))
        totals = np.zeros((2, len(candidates)))
        return cls(np.asarray(candidates, np.float64), sides, (updates[0], updates[1]), space, totals)

    def observe(self, join: MTBJoin) -> None:
        """Estimate from the current trees: one pass over the nodes, independent of the number of updates."""
        for number, others in enumerate((join.b, join.a)):
            assert isinstance(others, MTBTree)
            self.totals[number] += self._estimate(others, number, join.time)
        self.n_observed += 1

    @property
    def update_costs(self) -> NDArray[np.float64]:
        """(2, n_candidates): expected node accesses per update of `a` and of `b`."""
        return self.totals / max(1, self.n_observed)

    def recommend(self, n_objects: Sequence[int], probabilities: Sequence[float]) -> Recommendation:
        return recommend(self.candidates.tolist(), list(self.update_costs), n_objects, probabilities)

    def _estimate(self, trees: MTBTree, number: int, now: float) -> NDArray[np.float64]:
        total = np.zeros(len(self.candidates))
        current = trees.find_bucket(now)
        for bucket, tree in trees.trees.items():
            durations = [find_duration(each, trees.n_buckets, current - bucket, now) for each in self.candidates]
            sides, updates = self.sides[number], self.updates[number]
            total += expect_accesses(tree.nodes, sides, updates, now, np.array(durations), self.space)
        return total


def find_duration(interval: float, n_buckets: int, n_back: int, now: float) -> float:
    """How far an update looks ahead for objects in the bucket `n_back` before the current one."""
    length = interval / n_buckets
    end = min((math.ceil(now / length) - n_back) * length, now)
    return max(end + interval - now, 0.0)


def mean_speed(motions: Motions) -> float:
    """The mean speed of the centres of objects."""
    if not len(motions):
        return 0.0
    speeds = (motions.low_speeds + motions.high_speeds) / 2
    return float(np.sqrt((speeds**2).sum(axis=0)).mean())


@kernel
def expect_accesses(
    nodes: Nodes,
    sides: NDArray[np.float64],
    updates: NDArray[np.float64],
    now: float,
    durations: NDArray[np.float64],
    space: float,
) -> NDArray[np.float64]:
    """Equation 2 for each duration, averaged over the updates. No node is read twice, and the root is always read."""
    expected, slots = np.zeros(len(durations)), nodes.slots
    box = np.empty((4, slots.sides.shape[1]))
    for node in range(1, nodes.state[USED]):
        if nodes.counts[node] == 0:
            continue
        if node == find_root(nodes):
            expected += len(updates)
            continue
        slot = nodes.parents[node]
        age = now - slots.times[slot]
        for u in range(len(updates)):
            for d in range(slots.sides.shape[1]):
                box[LOW, d] = slots.sides[LOW, d, slot] + slots.sides[LOW_SPEED, d, slot] * age
                box[HIGH, d] = slots.sides[HIGH, d, slot] + slots.sides[HIGH_SPEED, d, slot] * age
                box[LOW_SPEED, d] = slots.sides[LOW_SPEED, d, slot] - updates[u, 1, d]
                box[HIGH_SPEED, d] = slots.sides[HIGH_SPEED, d, slot] - updates[u, 0, d]
            for k in range(len(durations)):
                expected[k] += min(1.0, measure_swept(box, sides, durations[k]) / space)
    return expected / len(updates)
