"""NaiveJoin: pairs without a time limit, first of all objects and then of each updated object.

Section 3.3 of Zhang et al. Nodes grow without limit, so nearly all of them meet at some time, and nearly all are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.paired_trees import PairedTrees, Parts, Trees, mean_sides
from vedette.papers.moving.tally import Tally
from vedette.papers.moving.tpr_star_tree import CAPACITY, TPRStarTree


@dataclass
class NaiveJoin(PairedTrees):
    @classmethod
    def build(
        cls, a: Motions, b: Motions, time: float, max_update_interval: float, *, capacity: int = CAPACITY
    ) -> Self:
        """Build the join from two sets at a time. Trees are optimised for the interval; pairs have no time limit."""
        trees = plant_trees(a, b, time, max_update_interval, capacity)
        return cls(*trees, time, max_update_interval, Tally.make())

    def parts(self, trees: Trees) -> Parts:
        assert isinstance(trees, TPRStarTree)
        return [(trees, np.inf)]


def plant_trees(
    a: Motions, b: Motions, time: float, max_update_interval: float, capacity: int
) -> tuple[TPRStarTree, TPRStarTree]:
    """A tree for each of two sets, optimised for windows of the other set's mean size."""
    trees = []
    for number, (motions, others) in enumerate(((a, b), (b, a))):
        sides = mean_sides(others, time)
        tree = TPRStarTree.make(motions.n_dims, max_update_interval, sides, capacity, number)
        tree.insert(np.arange(len(motions), dtype=np.int32), motions, time)
        trees.append(tree)
    return trees[0], trees[1]
