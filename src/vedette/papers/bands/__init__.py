"""Which values of a changing set are in which of many bands, when all values are shifted by one number.

Agarwal, Xie, Yang and Yu, "Monitoring Continuous Band-Join Queries over Dynamic Data" (2005). A band join asks for the
pairs of a left value r and a right value s with a <= r - s <= b. A value of one side shifts all values of the other
side (see `rounding`), and there are two questions: which shifted value is in which band, and which bands hold any.
"""

from vedette.operators.band_join.index.groups import Groups
from vedette.operators.band_join.index.lookup import find_affected, find_pair_batches, find_pairs
from vedette.operators.band_join.index.points import Points
from vedette.papers.bands.difference_tree import DifferenceTree
from vedette.papers.bands.index import BandIndex
from vedette.papers.bands.mixed import Mixed
from vedette.papers.bands.scan import Scan
from vedette.papers.bands.stabbing_groups import StabbingGroups
from vedette.papers.bands.stabbing_set import StabbingSet

# Structures over a fixed set of values and bands, by name; the last is the one that band joins use.
STRUCTURES: dict[str, type[BandIndex]] = {
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
