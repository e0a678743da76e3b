"""Crossing: boxes that a key jumps over between two rows, on the straight line from one to the other.

Numbers, dates and timestamps move along the line; any other field must be inside the box at both rows. Only boxes can
be crossed: queries with a residual are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Axis, Cells, NumberAxis
from vedette.data.columns import Column
from vedette.data.views import has_several_values
from vedette.native.budget import check_bytes
from vedette.operators.border.region_line import RSList
from vedette.operators.border.region_segments import RSLists
from vedette.queries.match import Group, Part, stack_cells

READ_AT_ONCE = 1 << 22  # entries, so that buffers for possible crossings stay small


def list_boundaries(part: Part, segments: dict[int, RSList | RSLists]) -> None:
    """Add the region segments of groups that can be crossed, by the number of the group, to those that exist."""
    for number, group in enumerate(part.groups):
        if number not in segments and _can_be_crossed(group):
            boxes = np.arange(len(group), dtype=np.int32)
            n_cells = [part.axes[name].n_cells for name in group.fields]
            made = RSList if len(n_cells) == 1 else RSLists
            segments[number] = made.build(group.firsts, group.lasts, boxes, n_cells)


def find_crossings(
    part: Part,
    segments: dict[int, RSList | RSLists],
    columns: dict[str, Column],
    n_rows: int,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The queries that each move jumps over, with neither row inside: columns of moves and queries.

    `segments` are those of `list_boundaries`.
    """
    both = np.flatnonzero((before >= 0) & (after >= 0))
    olds, news = before[both], after[both]
    cells = part.locate(columns)
    found_moves, found_queries, n_found = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    for number, group in enumerate(part.groups):
        if not _can_be_crossed(group) or not len(both):
            continue
        stacked, _ = stack_cells(cells, group.fields, n_rows)
        n_read = np.cumsum(segments[number].count_read(stacked, olds, news).clip(0))
        cuts = np.searchsorted(n_read, np.arange(READ_AT_ONCE, n_read[-1] + READ_AT_ONCE, READ_AT_ONCE))
        start = 0
        for cut in np.unique(np.append(cuts + 1, len(olds)).clip(max=len(olds))).tolist():
            some, boxes = segments[number].passed(stacked, olds[start:cut], news[start:cut])
            passed = some.astype(np.int64) + start
            crossed = _crosses(part, group, cells, columns, olds[passed], news[passed], boxes)
            found_moves.append(passed[crossed])
            found_queries.append(group.queries[boxes[crossed]].astype(np.int64))
            n_found += len(found_queries[-1])
            check_bytes(16 * n_found)
            start = cut
    moves, queries = np.concatenate(found_moves), np.concatenate(found_queries)
    codes = np.unique((moves << 32) | queries)
    codes = codes[~_is_inside(part, columns, codes, olds, news)]
    return both[codes >> 32].astype(np.int32), (codes & 0xFFFFFFFF).astype(np.int32)


def _can_be_crossed(group: Group) -> bool:
    return bool(group.fields) and not group.has_residuals and not any(map(has_several_values, group.fields))


def _crosses(
    part: Part,
    group: Group,
    cells: dict[str, Any],
    columns: dict[str, Column],
    olds: NDArray[np.int64],
    news: NDArray[np.int64],
    boxes: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Whether the line between two rows crosses the box, for columns of rows and boxes."""
    n = len(boxes)
    crosses = np.ones(n, np.bool_)
    enter, leave = np.zeros(n), np.ones(n)  # the part of the line that is inside
    enter_open, leave_open = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for number, name in enumerate(group.fields):
        axis = part.axes[name]
        firsts, lasts = group.firsts[number][boxes], group.lasts[number][boxes]
        is_free = (firsts == 0) & (lasts == axis.n_cells - 1)
        old_cells, new_cells = cells[name][olds], cells[name][news]
        stays = (firsts <= old_cells) & (old_cells <= lasts) & (firsts <= new_cells) & (new_cells <= lasts)
        if not isinstance(axis, NumberAxis) or columns[name].values.dtype == np.bool_:
            crosses &= stays
            continue
        values = columns[name].values.astype(np.float64)
        old, new = values[olds], values[news]
        null = axis.n_cells - 1
        is_number = np.isfinite(old) & np.isfinite(new) & (old_cells < null) & (new_cells < null)
        rests = old == new
        crosses &= is_free | (is_number & (stays | ~rests))
        slides = crosses & ~is_free & ~rests
        low, low_open, high, high_open = _ends(axis, firsts, lasts)
        with np.errstate(over="ignore", invalid="ignore"):
            step = np.where(slides, new - old, 1.0)
            at_low, at_high = (low - old) / step, (high - old) / step
        rises = step > 0
        for at, is_open, is_entry in ((at_low, low_open, rises), (at_high, high_open, ~rises)):
            later = slides & is_entry & ((at > enter) | ((at == enter) & is_open))
            enter[later], enter_open[later] = at[later], is_open[later]
            sooner = slides & ~is_entry & ((at < leave) | ((at == leave) & is_open))
            leave[sooner], leave_open[sooner] = at[sooner], is_open[sooner]
    meets: NDArray[np.bool_] = (enter < leave) | ((enter == leave) & ~enter_open & ~leave_open)
    return crosses & meets


def _ends(axis: Axis, firsts: Cells, lasts: Cells) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The values at which boxes begin and end, and whether these are exclusive."""
    cuts = np.concatenate([[-np.inf], axis.cuts.astype(np.float64), [np.inf]])
    return (
        cuts[np.minimum((firsts + 1) // 2, len(cuts) - 1)],
        firsts % 2 == 0,
        cuts[np.minimum(lasts // 2 + 1, len(cuts) - 1)],
        lasts % 2 == 0,
    )


def _is_inside(
    part: Part,
    columns: dict[str, Column],
    codes: NDArray[np.int64],
    olds: NDArray[np.int64],
    news: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whether one of the two rows is inside a box of the query of each code."""
    moves, places = np.unique(codes >> 32, return_inverse=True)
    inside = np.zeros(len(codes), np.bool_)
    for rows in (olds, news):
        matches = part.match({name: columns[name].take(rows[moves]) for name in part.fields}, len(moves))
        held = (matches.rows.astype(np.int64) << 32) | matches.positions
        inside |= np.isin((places << 32) | (codes & 0xFFFFFFFF), held)
    return inside
