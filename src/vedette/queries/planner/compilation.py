"""Compilation: from boxes in value space to a part, with an axis for every field and an index for every group of boxes.

Boxes that constrain the same fields form a group. Small groups are merged. Boxes of queries with residuals, or with
boxes that overlap, get their own groups, so that only they need the extra step. So do boxes that a forced index can
serve only if they are not merged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import build_axis, to_cells
from vedette.data.boxes import BoxBlock, Nulls, Ranges
from vedette.data.moments import virtual_fields
from vedette.data.schema import Schema
from vedette.data.view_axes import AnyAxis, build_any_axis, inner_axis
from vedette.data.views import has_several_values, is_computed, source_of
from vedette.language import Residual
from vedette.language.computed import MAX_COMPUTED, read_computed
from vedette.queries.match import Part
from vedette.queries.planner.choice import Boxes, choose_index, estimate_cost
from vedette.queries.planner.forced import is_not_merged
from vedette.queries.screen import Screen

SMALL_GROUP = 256  # smaller groups are merged and scanned
MAX_GROUPS = 12  # every further group costs each row a lookup
MERGE_COST, MERGE_PAIR_COST = 8.0, 1.0  # nanoseconds for a row of a group, and for a match in it, to be merged


def compile_part(
    blocks: Sequence[BoxBlock],
    residuals: Sequence[Residual],
    schema: Schema,
    first_query: int,
    n_queries: int,
    index: str | None = None,
) -> Part:
    """Compile boxes and residuals whose queries have the positions from `first_query` on, `n_queries` of them.

    `index` forces one index on all groups that it can answer for.
    """
    blocks = _keep_shared(blocks)
    residuals = _join_residuals(residuals)
    residual_of, member_of = _place_residuals(residuals, first_query, n_queries)
    axes = _build_axes(blocks, schema)
    groups = _merge_groups(_group(blocks, axes, residual_of, first_query, n_queries), axes, index)
    used = {name for group in groups for name in group.fields}
    return Part(
        {name: axis for name, axis in axes.items() if name in used},
        tuple(choose_index(group, index) for group in groups),
        tuple(residuals),
        first_query,
        n_queries,
        Screen.of([(group.fields, group.firsts, group.lasts) for group in groups], axes),
        residual_of,
        member_of,
    )


def _join_residuals(residuals: Sequence[Residual]) -> list[Residual]:
    """Join residuals of one shape, so that their pairs are evaluated together."""
    by_shape: dict[Any, list[Residual]] = defaultdict(list)
    for residual in residuals:
        by_shape[residual.expression].append(residual)
    return [same[0] if len(same) == 1 else Residual.concat(same) for same in by_shape.values()]


def _place_residuals(
    residuals: Sequence[Residual], first_query: int, n_queries: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    if not residuals:
        return np.empty(0, np.int32), np.empty(0, np.int32)
    residual_of = np.full(n_queries, -1, np.int32)
    member_of = np.zeros(n_queries, np.int32)
    for number, residual in enumerate(residuals):
        residual_of[residual.queries - first_query] = number
        member_of[residual.queries - first_query] = np.arange(len(residual.queries))
    return residual_of, member_of


def _build_axes(blocks: Sequence[BoxBlock], schema: Schema) -> dict[str, AnyAxis]:
    """The axes of fields and their views, in the order of the schema."""
    ranges: dict[str, list[Ranges | Nulls]] = defaultdict(list)
    for block in blocks:
        for name, each in block.ranges.items():
            ranges[name].append(each)
    axes: dict[str, AnyAxis] = {}
    for field in (*schema, *virtual_fields(schema)):
        for name in sorted(name for name in ranges if source_of(name) == field.name):
            axes[name] = build_any_axis(name, field.type, ranges[name])
    for name in sorted(filter(is_computed, ranges)):
        axes[name] = build_axis(read_computed(name).expression.type, ranges[name])
    return axes


def _keep_shared(blocks: Sequence[BoxBlock]) -> Sequence[BoxBlock]:
    """Boxes without ranges of computed fields, except of those that most boxes share."""
    counts: Counter[str] = Counter()
    for block in blocks:
        counts.update({name: len(block) for name in block.ranges if is_computed(name)})
    if len(counts) <= MAX_COMPUTED:
        return blocks
    dropped = counts.keys() - {name for name, _ in counts.most_common(MAX_COMPUTED)}
    kept = [{name: part for name, part in block.ranges.items() if name not in dropped} for block in blocks]
    return [BoxBlock(block.queries, ranges) for block, ranges in zip(blocks, kept, strict=True)]


def _group(
    blocks: Sequence[BoxBlock],
    axes: dict[str, AnyAxis],
    residual_of: NDArray[np.int32],
    first_query: int,
    n_queries: int,
) -> list[Boxes]:
    """Boxes by their fields, whether their queries have residuals, and whether a row may be in several of a query."""
    by_fields: dict[tuple[str, ...], list[BoxBlock]] = defaultdict(list)
    for block in blocks:
        by_fields[tuple(name for name in axes if name in block.ranges)].append(block)
    whole = [_to_boxes(fields, same, axes) for fields, same in by_fields.items()]
    repeated = _find_repeated(whole, first_query, n_queries)
    groups = []
    for boxes in whole:
        flags = np.zeros(len(boxes), np.int8)
        if len(residual_of):
            flags += residual_of[boxes.queries - first_query] >= 0
        if repeated is not None:
            flags += 2 * repeated[boxes.queries - first_query].astype(np.int8)
        kinds = np.unique(flags) if flags.any() else flags[:1]
        for kind in kinds.tolist():
            chosen = slice(None) if len(kinds) == 1 else flags == kind
            part = _select(boxes, chosen)
            groups.append(
                Boxes(part.fields, part.firsts, part.lasts, part.queries, part.n_cells, bool(kind & 1), bool(kind & 2))
            )
    return groups


def _to_boxes(fields: tuple[str, ...], blocks: Sequence[BoxBlock], axes: dict[str, AnyAxis]) -> Boxes:
    queries = np.concatenate([block.queries for block in blocks]).astype(np.int32)
    firsts = np.empty((len(fields), len(queries)), np.int32)
    lasts = np.empty_like(firsts)
    for number, name in enumerate(fields):
        pairs = [to_cells(inner_axis(axes[name]), block.ranges[name]) for block in blocks]
        np.concatenate([first for first, _ in pairs], out=firsts[number])
        np.concatenate([last for _, last in pairs], out=lasts[number])
    boxes = Boxes(fields, firsts, lasts, queries, tuple(axes[name].n_cells for name in fields), False, False)
    holds = (firsts <= lasts).all(axis=0)
    return boxes if holds.all() else _select(boxes, holds)


def _select(boxes: Boxes, chosen: Any) -> Boxes:
    if isinstance(chosen, slice):
        return boxes
    return Boxes(
        boxes.fields,
        np.ascontiguousarray(boxes.firsts[:, chosen]),
        np.ascontiguousarray(boxes.lasts[:, chosen]),
        boxes.queries[chosen],
        boxes.n_cells,
        boxes.has_residuals,
        boxes.repeats,
    )


def _find_repeated(groups: Sequence[Boxes], first_query: int, n_queries: int) -> NDArray[np.bool_] | None:
    """The queries for which one row may be in several boxes; None if no query has several boxes."""
    has_lists = any(has_several_values(name) for boxes in groups for name in boxes.fields)
    n_boxes = sum(len(boxes) for boxes in groups)
    if len(groups) == 1 and not has_lists and (n_boxes < 2 or bool((np.diff(groups[0].queries) > 0).all())):
        return None
    counts = np.zeros(n_queries, np.int64)
    for boxes in groups:
        counts += np.bincount(boxes.queries - first_query, minlength=n_queries)
        for name, first, last in zip(boxes.fields, boxes.firsts, boxes.lasts, strict=True):
            if has_several_values(name):  # a row may have several values in a range
                counts += 2 * np.bincount((boxes.queries - first_query)[first < last], minlength=n_queries)
    if counts.max(initial=0) < 2:
        return None
    repeated = counts > 1
    for boxes in groups:  # boxes of one group that are disjoint on one axis do not overlap
        local = boxes.queries - first_query
        within = np.bincount(local, minlength=n_queries)
        for name, first, last in zip(boxes.fields, boxes.firsts, boxes.lasts, strict=True):
            if has_several_values(name):
                continue
            order = np.lexsort((first, local))
            meets = (local[order][1:] == local[order][:-1]) & (first[order][1:] <= last[order][:-1])
            apart = (within == counts) & repeated
            apart[local[order][1:][meets]] = False
            repeated &= ~apart
    return repeated


def _merge_groups(groups: list[Boxes], axes: dict[str, AnyAxis], forced: str | None) -> list[Boxes]:
    """Merge small groups, and the smallest of too many groups, into one over all their fields; or all, if cheaper.

    Groups that could not use the forced index after a merge are not merged.
    """
    result = []
    for kind in {_kind(group) for group in groups}:
        same = sorted((each for each in groups if _kind(each) == kind), key=len, reverse=True)
        fixed = [each for each in same if not each.fields or is_not_merged(forced, len(each.fields))]
        bound = [each for each in same if each.fields and not is_not_merged(forced, len(each.fields))]
        large = [each for each in bound if len(each) > SMALL_GROUP][:MAX_GROUPS]
        rest = [each for each in bound if not any(each is kept for kept in large)]
        apart = large + ([_unite(rest, axes)] if len(rest) > 1 else rest)
        if len(apart) > 1:
            united = _unite(bound, axes)
            merging = sum(MERGE_COST + MERGE_PAIR_COST * each.facts().matches for each in apart)
            if estimate_cost(united) < sum(map(estimate_cost, apart)) + merging:
                apart = [united]
        result += fixed + apart
    return result


def _kind(boxes: Boxes) -> tuple[bool, bool, tuple[str, ...]]:
    """What groups must have in common to be merged. Rows are repeated for the values of a view that has several."""
    return boxes.has_residuals, boxes.repeats, tuple(filter(has_several_values, boxes.fields))


def _unite(groups: Sequence[Boxes], axes: dict[str, AnyAxis]) -> Boxes:
    fields = tuple(name for name in axes if any(name in group.fields for group in groups))
    n_boxes = sum(len(group) for group in groups)
    n_cells = tuple(axes[name].n_cells for name in fields)
    firsts = np.zeros((len(fields), n_boxes), np.int32)
    lasts = np.repeat(np.array(n_cells, np.int32)[:, None] - 1, n_boxes, axis=1)  # any value, and null
    start = 0
    for group in groups:
        for number, name in enumerate(group.fields):
            firsts[fields.index(name), start : start + len(group)] = group.firsts[number]
            lasts[fields.index(name), start : start + len(group)] = group.lasts[number]
        start += len(group)
    queries = np.concatenate([group.queries for group in groups])
    order = np.argsort(queries, kind="stable")  # bitmaps are read faster if positions are consecutive
    return Boxes(
        fields,
        firsts[:, order],
        lasts[:, order],
        queries[order],
        n_cells,
        groups[0].has_residuals,
        groups[0].repeats,
    )
