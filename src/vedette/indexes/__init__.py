"""Which of many boxes hold a row: one file per structure, all of one shape (see `index`)."""

from vedette.indexes.bitmaps import Bitmaps
from vedette.indexes.buckets import Buckets
from vedette.indexes.containment_grid import CEI
from vedette.indexes.grid_file import MLGF
from vedette.indexes.ibs_tree import IBS
from vedette.indexes.index import Index
from vedette.indexes.interval_skip_list import ISList
from vedette.indexes.keyed import Keyed
from vedette.indexes.lists import Lists
from vedette.indexes.quadtree import Quadtree
from vedette.indexes.scan import Scan
from vedette.indexes.verified import Verified

# By the name under which they are asked for.
INDEXES: dict[str, type[Index]] = {
    "Scan": Scan,
    "Lists": Lists,
    "Buckets": Buckets,
    "Keyed": Keyed,
    "Quadtree": Quadtree,
    "Bitmaps": Bitmaps,
    "Verified": Verified,
    "CEI": CEI,
    "IS-list": ISList,
    "IBS": IBS,
    "MLGF": MLGF,
}

ANY_NUMBER = range(1, 1 << 15)
# Indexes of the literature, to compare with, and the numbers of axes on which they answer. The planner takes them only
# where they are asked for.
FOR_COMPARISON: dict[str, range] = {
    "CEI": range(1, 2),
    "IS-list": range(1, 2),
    "IBS": ANY_NUMBER,
    "MLGF": ANY_NUMBER,
}

__all__ = [
    "CEI",
    "FOR_COMPARISON",
    "IBS",
    "INDEXES",
    "MLGF",
    "Bitmaps",
    "Buckets",
    "ISList",
    "Index",
    "Keyed",
    "Lists",
    "Quadtree",
    "Scan",
    "Verified",
]
