"""The plan of a query set as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vedette.data.views import shown_name
from vedette.errors import count
from vedette.indexes.names import name_of
from vedette.queries.match import Group, Part
from vedette.queries.parts import Parts

if TYPE_CHECKING:
    from vedette.queries.query_set import QuerySet


def explain(queries: QuerySet, parts: Parts, is_removed: NDArray[np.bool_]) -> str:
    """Which index serves which queries, why, and at what cost."""
    each = f", {queries.nbytes / len(queries):,.0f} bytes per query" if len(queries) else ""
    n_queries = count(len(queries), "query", "queries")
    lines = [f"{n_queries} at version {queries.version}, {_megabytes(queries.nbytes)}{each}"]
    for number, part in enumerate(parts.compiled):
        if len(parts.compiled) > 1:
            kind = "base" if number == 0 else "later changes"
            lines.append(f"part {number + 1}, {kind}: {_boxes(part.n_boxes)}")
        lines += [f"  {_describe_group(group)}" for group in part.groups]
        if part.residuals:
            n = sum(len(residual.queries) for residual in part.residuals)
            have = count(n, "query has a residual", "queries have a residual")
            lines.append(f"  {have}, checked on candidates, in {count(len(part.residuals), 'shape')}")
        lines += [f"  axis {_describe_axis(part, name)}" for name in part.axes]
    n_never = _count_without_boxes(parts, is_removed)
    if n_never:
        never = count(n_never, "query never matches: its condition", "queries never match: their condition")
        lines.append(f"  {never} contradicts itself")
    if not parts.compiled:
        lines.append("  nothing to match yet")
    return "\n".join(lines)


def _count_without_boxes(parts: Parts, is_removed: NDArray[np.bool_]) -> int:
    has_boxes = is_removed.copy()
    for part in parts.compiled:
        for group in part.groups:
            has_boxes[group.queries] = True
    return int(np.count_nonzero(~has_boxes))


def _describe_group(group: Group) -> str:
    fields = ", ".join(map(shown_name, group.fields)) or "no field"
    notes = ""
    if group.repeats:
        notes += ", several per query"
    if group.has_residuals:
        notes += ", with residuals"
    each = group.nbytes / max(1, len(group))
    index = name_of(group.index) or type(group.index).__name__
    return f"{_boxes(len(group))} on {fields}{notes}: {index}, {each:,.0f} bytes per box: {group.reason}"


def _describe_axis(part: Part, name: str) -> str:
    axis = part.axes[name]
    return f"{shown_name(name)}: {count((axis.n_cells - 2) // 2, 'cut')}, {_megabytes(axis.nbytes)}"


def _boxes(n: int) -> str:
    return count(n, "box", "boxes")


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
