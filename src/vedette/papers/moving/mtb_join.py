"""MTB-Join: pairs of an object with each time bucket of the other set, until all objects of that bucket are updated.

Section 5.3 of Zhang et al. (Theorem 2), by default with all improvements of sections 5.4 and 6. The initial join is
over two single trees, because all objects are in one bucket then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.mtb_tree import N_BUCKETS, MTBTree
from vedette.papers.moving.paired_trees import PairedTrees, Parts, Trees, mean_sides
from vedette.papers.moving.plane_sweep import ALL_TECHNIQUES, Techniques
from vedette.papers.moving.tally import Tally
from vedette.papers.moving.tpr_star_tree import CAPACITY


@dataclass
class MTBJoin(PairedTrees):
    @classmethod
    def build(
        cls,
        a: Motions,
        b: Motions,
        time: float,
        max_update_interval: float,
        *,
        n_buckets: int = N_BUCKETS,
        techniques: Techniques = ALL_TECHNIQUES,
        capacity: int = CAPACITY,
    ) -> Self:
        """Build the join from two sets; all objects were updated at `time`. The interval has `n_buckets` buckets."""
        tally, trees = Tally.make(), []
        for number, (motions, others) in enumerate(((a, b), (b, a))):
            sides = mean_sides(others, time)
            tree = MTBTree(motions.n_dims, max_update_interval, sides, n_buckets, capacity, number)
            tree.insert(np.arange(len(motions), dtype=np.int32), motions, time)
            trees.append(tree)
        return cls(trees[0], trees[1], time, max_update_interval, tally, techniques)

    def parts(self, trees: Trees) -> Parts:
        assert isinstance(trees, MTBTree)
        return trees.parts(self.time)
