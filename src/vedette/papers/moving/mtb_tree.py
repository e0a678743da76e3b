"""The MTB-tree: objects in one TPR*-tree for each time bucket of their last update.

Section 5.3 of Zhang et al. An object that updates is joined with each tree only as long as the objects of the tree can
be without an update: a bucket's end plus the longest update interval. A bucket is a part of 1/m of that interval, so
there are m + 1 trees at most while everybody keeps the interval. More buckets make shorter times and more trees to
ask; the paper found m = 2 best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vedette.native.buffers import grown
from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving.tpr_star_tree import CAPACITY, TPRStarTree

N_BUCKETS = 2
ABSENT = np.iinfo(np.int64).min


@dataclass
class MTBTree:
    """Trees by bucket: bucket k holds what was updated last in ((k - 1) L, k L], L the m-th part of the interval."""

    n_dims: int
    max_update_interval: float
    sides: NDArray[np.float64]  # of the queries that trees are made for
    n_buckets: int = N_BUCKETS
    capacity: int = CAPACITY
    number: int = 0  # 0 or 1: tells the pages of one set from those of the other
    trees: dict[int, TPRStarTree] = field(default_factory=dict)
    bucket_of: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def insert(self, places: NDArray[np.int32], motions: Motions, time: float) -> None:
        """Put objects in that are updated now and are not in any tree."""
        if not len(places):
            return
        bucket = self.find_bucket(time)
        if bucket not in self.trees:
            number = 2 * bucket + self.number
            self.trees[bucket] = TPRStarTree.make(
                self.n_dims, self.max_update_interval, self.sides, self.capacity, number
            )
        n_known = len(self.bucket_of)
        self.bucket_of = grown(self.bucket_of, n_known, int(places.max()) + 1)
        self.bucket_of[n_known:] = ABSENT
        if self.holds(places).any():
            known = int(places[self.holds(places)][0])
            raise ValueError(f"object {known} is in a tree; delete it before it is inserted again")
        self.trees[bucket].insert(places, motions, time)
        self.bucket_of[places] = bucket

    def delete(self, places: NDArray[np.int32], time: float) -> None:
        """Take objects out, each of the tree it is in; a tree without objects goes."""
        is_held = self.holds(places)
        if not is_held.all():
            raise ValueError(f"object {places[~is_held][0]} is in no tree; there are {len(self):,} objects")
        buckets = self.bucket_of[places]
        self.bucket_of[places] = ABSENT
        for bucket in np.unique(buckets):
            tree = self.trees[int(bucket)]
            tree.delete(places[buckets == bucket], time)
            if not len(tree):
                del self.trees[int(bucket)]

    def holds(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of the objects are in a tree."""
        is_held = np.zeros(len(places), np.bool_)
        is_known = places < len(self.bucket_of)
        is_held[is_known] = self.bucket_of[places[is_known]] != ABSENT
        return is_held

    def __len__(self) -> int:
        return sum(len(tree) for tree in self.trees.values())

    def parts(self, time: float) -> list[tuple[TPRStarTree, float]]:
        """The trees, oldest first, each with the time until which an object that updates now is joined with it.

        Theorem 2: what was updated until some time will be updated again until the interval later. A bucket that is
        older than that holds objects that broke the rule; they are taken to go on as if they had updated now.
        """
        parts = []
        for bucket, tree in sorted(self.trees.items()):
            end = self.find_end(bucket, time)
            parts.append((tree, end if end >= time else time + self.max_update_interval))
        return parts

    def find_bucket(self, time: float) -> int:
        length = self.max_update_interval / self.n_buckets
        bucket = math.ceil(time / length)
        return bucket if bucket * length >= time else bucket + 1

    def find_end(self, bucket: int, time: float) -> float:
        """When all objects of a bucket will have been updated: of the current bucket, seen from now."""
        return min(bucket * self.max_update_interval / self.n_buckets, time) + self.max_update_interval
