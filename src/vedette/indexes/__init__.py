"""Which of many boxes hold a row: one file per structure, all of one shape (see `index`)."""

from vedette.indexes.bitmaps import Bitmaps
from vedette.indexes.buckets import Buckets
from vedette.indexes.construct_bit_vectors import LCIBV
from vedette.indexes.construct_intervals import LCI, SCI
from vedette.indexes.construct_rectangles import VCR
from vedette.indexes.containment_grid import CEI
from vedette.indexes.direct_lists import Dlist
from vedette.indexes.dual import Dual
from vedette.indexes.grid_file import MLGF
from vedette.indexes.ibs_tree import IBS
from vedette.indexes.index import Index
from vedette.indexes.interval_skip_list import ISList
from vedette.indexes.keyed import Keyed
from vedette.indexes.lists import Lists
from vedette.indexes.packed_rectangle_tree import PackedRTree
from vedette.indexes.quadtree import Quadtree
from vedette.indexes.rectangle_tree import RTree
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
    "Dual": Dual,
    "SCI": SCI,
    "LCI": LCI,
    "LCI-BV": LCIBV,
    "Dlist": Dlist,
    "CEI": CEI,
    "IS-list": ISList,
    "IBS": IBS,
    "VCR": VCR,
    "R-tree": RTree,
    "packed R-tree": PackedRTree,
    "MLGF": MLGF,
}

ONE, TWO, ANY_NUMBER = range(1, 2), range(2, 3), range(1, 1 << 15)
# Indexes of the literature, to compare with, and the numbers of axes on which they answer. The planner takes them only
# where they are asked for, and MLGF within a Dual; boxes on other numbers of axes get what suits them.
FOR_COMPARISON: dict[str, range] = {
    "SCI": ONE,
    "LCI": ONE,
    "LCI-BV": ONE,
    "Dlist": ONE,
    "CEI": ONE,
    "IS-list": ONE,
    "IBS": ANY_NUMBER,
    "VCR": TWO,
    "R-tree": ANY_NUMBER,
    "packed R-tree": ANY_NUMBER,
    "MLGF": ANY_NUMBER,
}

__all__ = [
    "CEI",
    "FOR_COMPARISON",
    "IBS",
    "INDEXES",
    "LCI",
    "LCIBV",
    "MLGF",
    "SCI",
    "VCR",
    "Bitmaps",
    "Buckets",
    "Dlist",
    "Dual",
    "ISList",
    "Index",
    "Keyed",
    "Lists",
    "PackedRTree",
    "Quadtree",
    "RTree",
    "Scan",
    "Verified",
]
