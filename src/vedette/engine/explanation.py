"""The plan of a query set in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedette.engine.parts import Parts
from vedette.operators.match import Group, Part

if TYPE_CHECKING:
    from vedette.engine.query_set import QuerySet


def explain(queries: QuerySet, parts: Parts) -> str:
    """Which index answers for which queries, why, and what that costs."""
    each = f", {queries.nbytes / len(queries):,.0f} bytes a query" if len(queries) else ""
    lines = [f"{len(queries):,} queries at version {queries.version}, {_megabytes(queries.nbytes)}{each}"]
    for number, part in enumerate(parts.compiled):
        if len(parts.compiled) > 1:
            kind = "base" if number == 0 else "later changes"
            lines.append(f"part {number + 1}, {kind}: {part.n_boxes:,} boxes")
        lines += [f"  {_describe_group(group)}" for group in part.groups]
        if part.residuals:
            n = sum(len(residual.queries) for residual in part.residuals)
            lines.append(f"  {n:,} queries have a residual, checked on candidates, in {len(part.residuals)} shapes")
        lines += [f"  axis {_describe_axis(part, name)}" for name in part.axes]
    if not parts.compiled:
        lines.append("  nothing to match yet")
    return "\n".join(lines)


def _describe_group(group: Group) -> str:
    fields = ", ".join(group.fields) or "no field"
    notes = ""
    if group.repeats:
        notes += ", several to a query"
    if group.has_residuals:
        notes += ", with residuals"
    each = group.nbytes / max(1, len(group))
    index = type(group.index).__name__
    return f"{len(group):,} boxes on {fields}{notes}: {index}, {each:,.0f} bytes a box: {group.reason}"


def _describe_axis(part: Part, name: str) -> str:
    axis = part.axes[name]
    return f"{name}: {(axis.n_cells - 2) // 2:,} cuts, {_megabytes(axis.nbytes)}"


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
