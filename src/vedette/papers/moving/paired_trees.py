"""The common part of joins over trees: two sets in trees, the initial pairs, and the pairs of changed objects.

A continuous join has two phases (section 3.1 of Zhang et al.): the initial join, and its maintenance, which joins each
updated object with the other set. The algorithms differ in how far ahead they look.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.group_join import join_group
from vedette.papers.moving.plane_sweep import NO_TECHNIQUES, Techniques
from vedette.papers.moving.tally import Tally
from vedette.papers.moving.tpr_star_tree import TPRStarTree
from vedette.papers.moving.tree_join import Pairs, join_trees
from vedette.papers.moving.window_query import query_windows

Parts = Sequence[tuple[TPRStarTree, float]]  # trees, and until when objects are joined with each


class Trees(Protocol):
    """One set: one tree or several."""

    def insert(self, places: NDArray[np.int32], motions: Motions, time: float) -> None: ...

    def delete(self, places: NDArray[np.int32], time: float) -> None: ...

    def holds(self, places: NDArray[np.int32]) -> NDArray[np.bool_]: ...

    def __len__(self) -> int: ...


@dataclass
class PairedTrees(ABC):
    """The join; the objects of each set are numbered from 0."""

    a: Trees
    b: Trees
    time: float
    max_update_interval: float
    tally: Tally
    techniques: Techniques = NO_TECHNIQUES

    @abstractmethod
    def parts(self, trees: Trees) -> Parts:
        """The trees of one set, each with the time until which objects that update now are joined with it."""

    def initial_pairs(self) -> Pairs:
        """All pairs of the two sets, each with the interval from now on in which the objects intersect."""
        found = [
            join_trees(a, b, self.time, min(a_end, b_end), self.techniques, self.tally)
            for a, a_end in self.parts(self.a)
            for b, b_end in self.parts(self.b)
        ]
        return _concat(found)

    def update(
        self,
        time: float,
        a_places: NDArray[np.int32],
        a_motions: Motions,
        b_places: NDArray[np.int32],
        b_motions: Motions,
        a_gone: NDArray[np.int32] | None = None,
        b_gone: NDArray[np.int32] | None = None,
    ) -> Pairs:
        """Apply new motions of known or new objects, and removals; returns the pairs of all objects with a new motion.

        Earlier pairs of objects that changed or were removed are invalid from now on. A batch names an object at most
        once.
        """
        if time < self.time:
            raise ValueError(f"time runs backwards: got {time:g} after {self.time:g}; pass batches in time order")
        a_places, b_places = (np.ascontiguousarray(places, np.int32) for places in (a_places, b_places))
        for trees, places, motions, gone in (
            (self.a, a_places, a_motions, a_gone),
            (self.b, b_places, b_motions, b_gone),
        ):
            change_trees(trees, places, motions, gone, time)
        self.time = time
        first = self._search(a_places, a_motions, self.b)
        second = self._search(b_places, b_motions, self.a)
        is_new = ~np.isin(second.b, a_places)  # pairs of two changed objects are found from either side
        mirrored = Pairs(second.b[is_new], second.a[is_new], second.starts[is_new], second.ends[is_new])
        return _concat([first, mirrored])

    def _search(self, places: NDArray[np.int32], motions: Motions, others: Trees) -> Pairs:
        """The pairs of changed objects, as `a`, with all objects of the other set."""
        found = []
        for tree, end in self.parts(others):
            if self.techniques.group_updates and np.isfinite(end):
                pairs = join_group(tree, motions, self.time, end, self.techniques, self.tally)
            else:
                pairs = query_windows(tree, motions, self.time, end, self.tally)
            found.append(Pairs(places[pairs.a], pairs.b.astype(np.int32), pairs.starts, pairs.ends))
        return _concat(found)


def change_trees(
    trees: Trees, places: NDArray[np.int32], motions: Motions, gone: NDArray[np.int32] | None, time: float
) -> NDArray[np.int32]:
    """Delete the named objects that are known, and insert those with a new motion; all objects that were named."""
    named = np.asarray(places, np.int32)
    if gone is not None:
        named = np.concatenate([named, np.asarray(gone, np.int32)])
    distinct, counts = np.unique(named, return_counts=True)
    if len(distinct) < len(named):
        twice = distinct[counts > 1][0]
        raise ValueError(f"object {twice} is named more than once in a batch; pass only its last motion")
    trees.delete(named[trees.holds(named)], time)
    trees.insert(named[: len(places)], motions, time)
    return named


def _concat(many: Sequence[Pairs]) -> Pairs:
    if not many:
        return Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0))
    return Pairs(*(np.concatenate(columns) for columns in zip(*many, strict=True)))


def mean_sides(motions: Motions, time: float) -> NDArray[np.float64]:
    """The mean side in each dimension: the query that trees of the other set are optimised for."""
    if not len(motions):
        return np.zeros(motions.n_dims)
    lows, highs = motions.at(time)
    sides: NDArray[np.float64] = np.maximum(highs - lows, 0.0).mean(axis=1)
    return sides
