"""The plan of a set of joins as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vedette.errors import count
from vedette.operators.window_join.algorithms import ALGORITHMS
from vedette.operators.window_join.branches import Branches, Edge, Signature
from vedette.operators.window_join.bundles import MIN_BUNDLE

if TYPE_CHECKING:
    from vedette.operators.window_join.query_set import JoinQuerySet


def explain(queries: JoinQuerySet) -> str:
    """How each group of branches finds its pairs, why, and what selects rows of each stream."""
    n_queries = count(len(queries), "query", "queries")
    lines = [f"{n_queries} at version {queries.version} over {', '.join(queries.streams)}"]
    if queries.index is not None and len(queries):
        lines.append(f"  {queries.index}, because it was requested: {ALGORITHMS[queries.index].summary}")
    for signature, (branches, is_removed) in queries.groups().items():
        active = branches.take(np.flatnonzero(~is_removed))
        if len(active):
            lines += _describe_group(signature, active, queries.streams, queries.index)
    checked = sum(len(residual) for residual in queries.residuals)
    if checked:
        have = count(checked, "query has a residual", "queries have a residual")
        lines.append(f"  {have}, checked on pairs, in {count(len(queries.residuals), 'shape')}")
    for number, stream in enumerate(queries.streams):
        parts = queries.selections(number).parts
        for part in parts.compiled:
            for group in part.groups:
                fields = ", ".join(group.fields) or "no field"
                index = f"{type(group.index).__name__}: {group.reason}" if queries.index is None else queries.index
                lines.append(f"  {stream}: {count(len(group), 'selection')} on {fields}: {index}")
    if len(lines) == 1:
        lines.append("  nothing to join yet")
    return "\n".join(lines)


def _describe_group(signature: Signature, branches: Branches, streams: list[str], index: str | None) -> list[str]:
    windows = " and ".join(
        f"{stream} by {'rows' if counts else 'time'}" for stream, counts in zip(streams, signature.counts, strict=True)
    )
    lines = [f"  {count(len(branches), 'branch', 'branches')}, windows of {windows}"]
    if index is None:
        lines += [f"    {_describe_edge(edge, streams)}" for edge in signature.edges]
    else:
        lines += [f"    {ALGORITHMS[index].describe(edge, branches)}" for edge in signature.edges]
    n_bundled = _count_bundled(signature, branches) if index is None else 0
    if n_bundled:
        lines.append(
            f"    {n_bundled:,} of them select the same rows of both streams as many others: if that is cheaper, "
            f"pairs are matched with all their ranges at once"
        )
    if signature.conditions:
        lines.append(f"    checked on pairs: {', '.join(link.name for link in signature.conditions)}")
    return lines


def _count_bundled(signature: Signature, branches: Branches) -> int:
    """How many branches are in bundles (see `bundles`), except for windows of very different lengths."""
    if len(signature.edges) > 1 or signature.edges[0].link is None:
        return 0
    _, counts = np.unique(branches.selections, axis=1, return_counts=True)
    return int(counts[counts >= MIN_BUNDLE].sum())


def _describe_edge(edge: Edge, streams: list[str]) -> str:
    first, second = (streams[number] for number in edge.streams)
    if edge.equalities:
        equal = ", ".join(link.name.replace(" with ", " = ") for link in edge.equalities)
        order = "" if edge.link is None else f", then ordered by {edge.link.name}"
        return f"{first} and {second}: lists by {equal}{order}: a probe reads the run that joins"
    if edge.link is not None:
        return f"{first} and {second}: lists ordered by {edge.link.name}: a probe reads the run that joins"
    return f"{first} and {second}: lists of all selected rows: only residuals link the two"
