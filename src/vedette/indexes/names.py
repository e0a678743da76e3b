"""Indexes by name. The papers' structures load when somebody asks for one: the planner never needs them.

To add an index that the planner may choose, add its file and its line here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vedette.indexes.index import Index
from vedette.lazy_table import LazyTable

ONE, TWO, ANY_NUMBER = range(1, 2), range(2, 3), range(1, 1 << 15)


class IndexHome(NamedTuple):
    """Where an index is defined, and the numbers of fields on which it answers by itself."""

    module: str
    class_name: str
    n_fields: range


# What the planner chooses from. Inside a `Verified` some answer on more fields.
_PLANNED = {
    "Scan": IndexHome("vedette.indexes.scan", "Scan", ANY_NUMBER),
    "Lists": IndexHome("vedette.indexes.lists", "Lists", ONE),
    "Buckets": IndexHome("vedette.indexes.buckets", "Buckets", ONE),
    "Keyed": IndexHome("vedette.indexes.keyed", "Keyed", TWO),
    "Quadtree": IndexHome("vedette.indexes.quadtree", "Quadtree", TWO),
    "Bitmaps": IndexHome("vedette.indexes.bitmaps", "Bitmaps", ANY_NUMBER),
    "Verified": IndexHome("vedette.indexes.verified", "Verified", range(2, ANY_NUMBER.stop)),
    "Dual": IndexHome("vedette.indexes.dual", "Dual", ANY_NUMBER),
}
# Indexes of the literature, to compare with. They are used only when they are asked for by name, and MLGF within a
# `Dual`; boxes on other numbers of fields get an index that the planner chooses.
_FROM_PAPERS = {
    "SCI": IndexHome("vedette.papers.constructs.construct_intervals", "SCI", ONE),
    "LCI": IndexHome("vedette.papers.constructs.construct_intervals", "LCI", ONE),
    "LCI-BV": IndexHome("vedette.papers.constructs.construct_bit_vectors", "LCIBV", ONE),
    "Dlist": IndexHome("vedette.papers.constructs.direct_lists", "Dlist", ONE),
    "CEI": IndexHome("vedette.papers.border.containment_grid", "CEI", ONE),
    "IS-list": IndexHome("vedette.papers.border.interval_skip_list", "ISList", ONE),
    "IBS": IndexHome("vedette.papers.duality.ibs_tree", "IBS", ANY_NUMBER),
    "VCR": IndexHome("vedette.papers.constructs.construct_rectangles", "VCR", TWO),
    "R-tree": IndexHome("vedette.papers.rtrees.rectangle_tree", "RTree", ANY_NUMBER),
    "packed R-tree": IndexHome("vedette.papers.rtrees.packed_rectangle_tree", "PackedRTree", ANY_NUMBER),
    "MLGF": IndexHome("vedette.indexes.grid_file", "MLGF", ANY_NUMBER),
}
_HOMES = _PLANNED | _FROM_PAPERS
_NAMES = {home.class_name: name for name, home in _HOMES.items()}

# Those that are saved as they are; the papers' structures are saved as boxes and built again.
SAVED_INDEXES = (*_PLANNED, "MLGF")

N_FIELDS = {name: home.n_fields for name, home in _HOMES.items()}
PAPER_INDEXES = {name: home.n_fields for name, home in _FROM_PAPERS.items()}


INDEXES: Mapping[str, type[Index]] = LazyTable({name: home[:2] for name, home in _HOMES.items()})


def name_of(index: object) -> str | None:
    """The name of an index, or None where it has none."""
    return _NAMES.get(type(index).__name__)
