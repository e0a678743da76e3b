"""TC-Join: pairs from now until all objects must have been updated, the maximum update interval later.

Section 5.2 of Zhang et al. (Theorem 1): an update invalidates the pairs of its object, so later pairs are not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.naive_join import plant_trees
from vedette.papers.moving.paired_trees import PairedTrees, Parts, Trees
from vedette.papers.moving.plane_sweep import NO_TECHNIQUES, Techniques
from vedette.papers.moving.tally import Tally
from vedette.papers.moving.tpr_star_tree import CAPACITY, TPRStarTree


@dataclass
class TCJoin(PairedTrees):
    @classmethod
    def build(
        cls,
        a: Motions,
        b: Motions,
        time: float,
        max_update_interval: float,
        *,
        techniques: Techniques = NO_TECHNIQUES,
        capacity: int = CAPACITY,
    ) -> Self:
        """Build the join from two sets; all objects were updated at `time`."""
        trees = plant_trees(a, b, time, max_update_interval, capacity)
        return cls(*trees, time, max_update_interval, Tally.make(), techniques)

    def parts(self, trees: Trees) -> Parts:
        assert isinstance(trees, TPRStarTree)
        return [(trees, self.time + self.max_update_interval)]
