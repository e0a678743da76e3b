"""Which moving rectangles of two sets intersect, and when: the algorithms of Zhang et al., each under its name.

Zhang, Qi, Lin, Wang and Wong, "A Highly Optimized Algorithm for Continuous Intersection Join Queries over Moving
Objects" (VLDB Journal 2012). They are here to be compared: all give the same pairs, and tell what it took.
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
    """What NaiveJoin, TC-Join and MTB-Join promise.

    Objects are named by whole numbers from 0, in each set by their own. Everyone updates within the interval, told anew
    or not: a pair is told until its objects must have been updated, and no longer. TP-Join and ETP-Join have contracts
    of their own, as they tell what happens next and not for how long.
    """

    tally: Tally

    @classmethod
    def build(cls, a: Motions, b: Motions, time: float, max_update_interval: float) -> Self:
        """Two sets, all of them updated at the time."""

    def initial_pairs(self) -> Pairs:
        """All pairs, each with the interval from now on in which it intersects."""

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
        """Take in new motions of objects, known or not, and removals; the pairs of all that have a new motion.

        All pairs told before of an object that changed or went are void from then on.
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
