"""The MTB-tree: objects in one TPR*-tree per time bucket of their last update.

Section 5.3 of Zhang et al. An updated object is joined with each tree only until all objects of the tree must have been
updated: the end of the bucket plus the maximum update interval. A bucket is 1/m of that interval, so there are at most
m + 1 trees while all objects keep the interval. More buckets mean shorter times and more trees to search; the paper
found m = 2 best.
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
    """Trees by bucket: bucket k holds the objects last updated in ((k - 1) L, k L], where L is 1/m of the interval."""

    n_dims: int
    max_update_interval: float
    sides: NDArray[np.float64]  # of the queries that the trees are optimised for
    n_buckets: int = N_BUCKETS
    capacity: int = CAPACITY
    number: int = 0  # 0 or 1: separates the pages of the two sets
    trees: dict[int, TPRStarTree] = field(default_factory=dict)
    bucket_of: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def insert(self, places: NDArray[np.int32], motions: Motions, time: float) -> None:
        """Insert objects that are updated now and are not in any tree."""
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
            raise ValueError(f"object {known} is already in a tree; delete it before you insert it again")
        self.trees[bucket].insert(places, motions, time)
        self.bucket_of[places] = bucket

    def delete(self, places: NDArray[np.int32], time: float) -> None:
        """Delete objects, each from its tree; an empty tree is dropped."""
        is_held = self.holds(places)
        if not is_held.all():
            raise ValueError(f"object {places[~is_held][0]} is not in any tree; there are {len(self):,} objects")
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

        Theorem 2: an object updated up to some time is updated again within the interval after it. A bucket older than
        that holds objects that are overdue; they are treated as if they had been updated now.
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
        """When all objects of a bucket will have been updated; for the current bucket, as of now."""
        return min(bucket * self.max_update_interval / self.n_buckets, time) + self.max_update_interval
