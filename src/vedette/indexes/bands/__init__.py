"""Which values of a changing set come into which of many bands, when all of them are shifted by one number.

Agarwal, Xie, Yang and Yu, "Monitoring Continuous Band-Join Queries over Dynamic Data" (2005). A band join asks for the
pairs of a left value r and a right value s with a <= r - s <= b. A value that comes or goes on one side shifts all
values of the other side (see `rounding`), and two questions are asked: which pairs of value and band meet, and which
bands get a value at all.
"""

from vedette.indexes.bands.difference_tree import DifferenceTree
from vedette.indexes.bands.groups import Groups
from vedette.indexes.bands.lookup import find_affected, find_pair_batches, find_pairs
from vedette.indexes.bands.mixed import Mixed
from vedette.indexes.bands.points import Points
from vedette.indexes.bands.scan import Scan
from vedette.indexes.bands.stabbing_groups import StabbingGroups
from vedette.indexes.bands.stabbing_set import StabbingSet

# Structures over a fixed set of values and bands, by name; the last is the one that band joins are answered with.
STRUCTURES: dict[str, type[Scan | DifferenceTree | StabbingSet | Mixed | StabbingGroups]] = {
    "Scan": Scan,
    "DifferenceTree": DifferenceTree,
    "StabbingSet": StabbingSet,
    "Mixed": Mixed,
    "StabbingGroups": StabbingGroups,
}

__all__ = [
    "STRUCTURES",
    "DifferenceTree",
    "Groups",
    "Mixed",
    "Points",
    "Scan",
    "StabbingGroups",
    "StabbingSet",
    "find_affected",
    "find_pair_batches",
    "find_pairs",
]
