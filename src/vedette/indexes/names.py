"""Indexes by name. To add one that the planner may choose, add its file and its line here: CONTRIBUTING.md.

An index declares on its class what it supports (see `Index`). The papers' structures are imported only when one is
requested by name: the planner does not use them.
"""

from __future__ import annotations

from collections.abc import Mapping

from vedette.indexes.index import Index, PlannedIndex
from vedette.lazy_table import LazyTable

# The planner's choices: name, module, class.
_PLANNED = {
    "Scan": ("vedette.indexes.scan", "Scan"),
    "Lists": ("vedette.indexes.lists", "Lists"),
    "Buckets": ("vedette.indexes.buckets", "Buckets"),
    "Keyed": ("vedette.indexes.keyed", "Keyed"),
    "KeyedRuns": ("vedette.indexes.keyed_runs", "KeyedRuns"),
    "Quadtree": ("vedette.indexes.quadtree", "Quadtree"),
    "Bitmaps": ("vedette.indexes.bitmaps", "Bitmaps"),
    "Verified": ("vedette.indexes.verified", "Verified"),
    "Dual": ("vedette.indexes.dual", "Dual"),
}
# Indexes of the literature, for comparison. They are used only on request by name, and MLGF within a `Dual`. Boxes on
# other numbers of fields get an index that the planner chooses.
_FROM_PAPERS = {
    "SCI": ("vedette.papers.constructs.construct_intervals", "SCI"),
    "LCI": ("vedette.papers.constructs.construct_intervals", "LCI"),
    "LCI-BV": ("vedette.papers.constructs.construct_bit_vectors", "LCIBV"),
    "Dlist": ("vedette.papers.constructs.direct_lists", "Dlist"),
    "CEI": ("vedette.papers.border.containment_grid", "CEI"),
    "IS-list": ("vedette.papers.border.interval_skip_list", "ISList"),
    "IBS": ("vedette.papers.duality.ibs_tree", "IBS"),
    "VCR": ("vedette.papers.constructs.construct_rectangles", "VCR"),
    "R-tree": ("vedette.papers.rtrees.rectangle_tree", "RTree"),
    "packed R-tree": ("vedette.papers.rtrees.packed_rectangle_tree", "PackedRTree"),
    "MLGF": ("vedette.indexes.grid_file", "MLGF"),
}
_HOMES = _PLANNED | _FROM_PAPERS
_NAMES = {class_name: name for name, (_, class_name) in _HOMES.items()}

INDEXES: Mapping[str, type[Index]] = LazyTable(_HOMES)
PLANNED_INDEXES: Mapping[str, type[PlannedIndex]] = LazyTable(_PLANNED)
PAPER_INDEXES: Mapping[str, type[Index]] = LazyTable(_FROM_PAPERS)
# Indexes that are saved directly; the papers' structures are saved as boxes and built again.
SAVED_INDEXES = (*_PLANNED, "MLGF")


def name_of(index: object) -> str | None:
    """The name of an index, or None."""
    return _NAMES.get(type(index).__name__)


def document() -> str:
    """All indexes as a table for docs/operators.md."""
    rows = []
    for name, index in INDEXES.items():
        fields = str(index.n_fields.start) + (" or more" if len(index.n_fields) > 1 else "")
        planned = PLANNED_INDEXES.get(name)
        chosen = planned.wins_for if planned else "only on request"
        rows.append(f"| `{name}` | {fields} | {chosen} | {planned.needs if planned else ''} |")
    return "\n".join(["| index | fields | chosen for | needs |", "| --- | --- | --- | --- |", *rows])
