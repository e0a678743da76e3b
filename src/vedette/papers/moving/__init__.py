"""Which moving rectangles of two sets intersect, and when: the algorithms of Zhang et al., by the paper's names.

Zhang, Qi, Lin, Wang and Wong, "A Highly Optimized Algorithm for Continuous Intersection Join Queries over Moving
Objects" (VLDB Journal 2012). They exist for comparison: all find the same pairs, and each counts its work.
"""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.cost_model import CostModel, recommend
from vedette.papers.moving.etp_join import ETPJoin
from vedette.papers.moving.mtb_join import MTBJoin
from vedette.papers.moving.mtb_tree import MTBTree
from vedette.papers.moving.naive_join import NaiveJoin
from vedette.papers.moving.plane_sweep import ALL_TECHNIQUES, NO_TECHNIQUES, Techniques
from vedette.papers.moving.tally import Tally
from vedette.papers.moving.tc_join import TCJoin
from vedette.papers.moving.tp_join import Moment, TPAnswer, tp_join
from vedette.papers.moving.tpr_star_tree import TPRStarTree
from vedette.papers.moving.tree_join import Pairs


class ContinuousJoin(Protocol):
    """The interface of NaiveJoin, TC-Join and MTB-Join.

    The objects of each set are numbered from 0. Every object updates within the interval, even if its motion is the
    same: a pair is reported only until its objects must have been updated. TP-Join and ETP-Join have other interfaces,
    because they report the next change and not intervals.
    """

    tally: Tally

    @classmethod
    def build(cls, a: Motions, b: Motions, time: float, max_update_interval: float) -> Self:
        """Build the join from two sets; all objects were updated at `time`."""

    def initial_pairs(self) -> Pairs:
        """All pairs, each with the interval from now on in which the objects intersect."""

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

        Earlier pairs of objects that changed or were removed are invalid from then on.
        """


JOINS: dict[str, type[NaiveJoin | TCJoin | MTBJoin]] = {
    "NaiveJoin": NaiveJoin,
    "TC-Join": TCJoin,
    "MTB-Join": MTBJoin,
}

__all__ = [
    "ALL_TECHNIQUES",
    "JOINS",
    "NO_TECHNIQUES",
    "ContinuousJoin",
    "CostModel",
    "ETPJoin",
    "MTBJoin",
    "MTBTree",
    "Moment",
    "NaiveJoin",
    "Pairs",
    "TCJoin",
    "TPAnswer",
    "TPRStarTree",
    "Tally",
    "Techniques",
    "recommend",
    "tp_join",
]
