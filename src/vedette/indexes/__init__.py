"""Which of many boxes hold a row: one file per structure, all of one shape (see `index`)."""

from vedette.indexes.bitmaps import Bitmaps
from vedette.indexes.buckets import Buckets
from vedette.indexes.index import Index
from vedette.indexes.keyed import Keyed
from vedette.indexes.lists import Lists
from vedette.indexes.quadtree import Quadtree
from vedette.indexes.scan import Scan
from vedette.indexes.verified import Verified

# By the name under which they are asked for.
INDEXES: dict[str, type[Scan | Lists | Buckets | Keyed | Quadtree | Bitmaps | Verified]] = {
    "Scan": Scan,
    "Lists": Lists,
    "Buckets": Buckets,
    "Keyed": Keyed,
    "Quadtree": Quadtree,
    "Bitmaps": Bitmaps,
    "Verified": Verified,
}

__all__ = ["INDEXES", "Bitmaps", "Buckets", "Index", "Keyed", "Lists", "Quadtree", "Scan", "Verified"]
