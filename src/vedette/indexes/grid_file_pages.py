"""Pages of a multilevel grid file: adding points, and dividing full pages (see `grid_file`).

A page is divided in the middle of its region, on the axis that divides its points most evenly. Halves without points
are not created. Equal points cannot be divided: their pages are linked.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.grid_file_directory import (
    FANOUT,
    HIGH,
    LOW,
    N_DIRECTORIES,
    N_PAGES,
    N_POINTS,
    N_REMOVED,
    NOWHERE,
    ROOT,
    Directory,
    cut_directory,
    cut_entry,
    empty_bounds,
    find_entry,
    raise_root,
    widen,
)
from vedette.native.kernels import kernel

PAGE = 64  # points, which are compared at once; an empty place has NOWHERE as its first cell


class Pages(NamedTuple):
    """The pages with points of a grid file (see `MLGF`)."""

    points: NDArray[np.int32]
    page_ids: NDArray[np.int32]
    sizes: NDArray[np.int32]
    nexts: NDArray[np.int32]


@kernel
def insert_points(
    firsts: NDArray[np.int32],
    lasts: NDArray[np.int32],
    ids: NDArray[np.int32],
    done: int,
    pages: Pages,
    directory: Directory,
) -> int:
    """Add boxes from `done` on while there are free pages. Returns how many are done."""
    points, page_ids, sizes = pages.points, pages.page_ids, pages.sizes
    axes, regions, bounds, children = directory.axes, directory.regions, directory.bounds, directory.children
    n_entries, levels, counts = directory.n_entries, directory.levels, directory.counts
    n_axes, n_boxes = firsts.shape
    n_known = len(axes)
    point = np.empty(2 * n_axes, np.int32)
    corner = np.empty(2 * n_known, np.int32)  # the point on the axes of the directory
    for box in range(done, n_boxes):
        if counts[N_PAGES] == len(points) or counts[N_DIRECTORIES] + levels[counts[ROOT]] + 3 > len(children):
            return box
        for axis in range(n_axes):
            point[axis], point[n_axes + axis] = firsts[axis, box], lasts[axis, box]
        for i in range(n_known):
            corner[i], corner[n_known + i] = firsts[axes[i], box], lasts[axes[i], box]
        node = counts[ROOT]
        if n_entries[node] == FANOUT:
            node = raise_root(regions, bounds, children, n_entries, levels, counts)
        while levels[node] > 0:
            entry = find_entry(corner, node, regions, n_entries)
            child = children[node, entry]
            if n_entries[child] == FANOUT:
                cut_directory(node, entry, regions, bounds, children, n_entries, levels, counts)
                entry = find_entry(corner, node, regions, n_entries)
            widen(corner, node, entry, bounds)
            node = np.int64(children[node, entry])
        entry = find_entry(corner, node, regions, n_entries)
        entry = _make_room(corner, node, entry, pages, directory)
        page = children[node, entry]
        place = sizes[page]
        for dimension in range(2 * n_axes):
            points[page, dimension, place] = point[dimension]
        page_ids[page, place] = ids[box]
        sizes[page] += 1
        counts[N_POINTS] += 1
        widen(corner, node, entry, bounds)
    return int(n_boxes)


@kernel
def remove_places(
    places: NDArray[np.int64],
    points: NDArray[np.int32],
    page_ids: NDArray[np.int32],
    sizes: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Remove the points at these places (page times `PAGE` plus place in the page), which are ascending."""
    n_dimensions = points.shape[1]
    for i in range(len(places) - 1, -1, -1):  # backwards, because the last point of a page fills the gap
        page, place = places[i] // PAGE, places[i] % PAGE
        last = sizes[page] - 1
        for dimension in range(n_dimensions):
            points[page, dimension, place] = points[page, dimension, last]
            points[page, dimension, last] = NOWHERE
        page_ids[page, place] = page_ids[page, last]
        page_ids[page, last] = -1
        sizes[page] = last
        counts[N_POINTS] -= 1
        counts[N_REMOVED] += 1


@kernel
def _make_room(
    corner: NDArray[np.int32],
    node: int,
    entry: int,
    pages: Pages,
    directory: Directory,
) -> int:
    """The entry whose page has room for the point.

    A page that links to another has equal points only, so a different point gets its own page.
    """
    points, page_ids, sizes, nexts = pages.points, pages.page_ids, pages.sizes, pages.nexts
    axes, regions, bounds, children = directory.axes, directory.regions, directory.bounds, directory.children
    n_entries, counts = directory.n_entries, directory.counts
    page = children[node, entry]
    if nexts[page] < 0:
        if sizes[page] < PAGE:
            return entry
        _fit_bounds(node, entry, axes, points, sizes, bounds, children)  # points may have been removed
    is_one_point, is_other = True, False
    for d in range(len(corner)):
        is_one_point &= bounds[node, LOW, d, entry] == bounds[node, HIGH, d, entry]
        is_other |= bounds[node, LOW, d, entry] != corner[d]
    if is_one_point and not is_other:
        if sizes[page] == PAGE:
            linked = _new_page(points, page_ids, sizes, nexts, counts)
            nexts[linked] = page
            children[node, entry] = linked
        return entry
    dimension, cut = _choose_cut(corner, node, entry, page, is_one_point, axes, points, regions, bounds)
    new_page = _new_page(points, page_ids, sizes, nexts, counts)
    new_entry = cut_entry(node, entry, dimension, cut, regions, bounds, children, n_entries)
    children[node, new_entry] = new_page
    if is_one_point:  # linked pages stay together
        if bounds[node, LOW, dimension, entry] >= cut:
            children[node, entry], children[node, new_entry] = new_page, page
            bounds[node, :, :, new_entry] = bounds[node, :, :, entry]
            empty_bounds(node, entry, bounds)
    else:
        _divide_page(page, new_page, dimension, cut, axes, points, page_ids, sizes)
        _fit_bounds(node, entry, axes, points, sizes, bounds, children)
        _fit_bounds(node, new_entry, axes, points, sizes, bounds, children)
    return entry if corner[dimension] < cut else new_entry


@kernel
def _choose_cut(
    corner: NDArray[np.int32],
    node: int,
    entry: int,
    page: int,
    is_one_point: bool,
    axes: NDArray[np.int64],
    points: NDArray[np.int32],
    regions: NDArray[np.int32],
    bounds: NDArray[np.int32],
) -> tuple[int, int]:
    """The most even cut: the dimension, and where the upper half of the region begins."""
    n_known, n_axes = len(axes), points.shape[1] // 2
    best, best_cut, most_even = 0, 0, -1
    for d in range(2 * n_known):
        low, high = bounds[node, LOW, d, entry], bounds[node, HIGH, d, entry]
        if is_one_point:
            low, high = min(low, corner[d]), max(high, corner[d])
        if low >= high:
            continue
        cut = _halve(regions[node, LOW, d, entry], regions[node, HIGH, d, entry], low, high)
        below = 0
        dimension = axes[d] if d < n_known else n_axes + axes[d - n_known]
        for i in range(PAGE):
            below += points[page, dimension, i] < cut
        even = 0 if is_one_point else min(below, PAGE - below)
        if even > most_even:
            best, best_cut, most_even = d, cut, even
    return best, best_cut


@kernel
def _halve(region_low: int, region_high: int, low: int, high: int) -> int:
    """The middle of the region, or of its half, quarter and so on, that separates `low` from `high`."""
    start, end = np.int64(region_low), np.int64(region_high)
    while True:
        middle = start + (end - start + 1) // 2
        if high < middle:
            end = middle - 1
        elif low >= middle:
            start = middle
        else:
            return int(middle)


@kernel
def _new_page(
    points: NDArray[np.int32],
    page_ids: NDArray[np.int32],
    sizes: NDArray[np.int32],
    nexts: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    page = counts[N_PAGES]
    counts[N_PAGES] += 1
    points[page] = NOWHERE
    page_ids[page] = -1
    sizes[page], nexts[page] = 0, -1
    return int(page)


@kernel
def _divide_page(
    page: int,
    new_page: int,
    d: int,
    cut: int,
    axes: NDArray[np.int64],
    points: NDArray[np.int32],
    page_ids: NDArray[np.int32],
    sizes: NDArray[np.int32],
) -> None:
    """Move the points above the cut to the new page."""
    n_dimensions = points.shape[1]
    own = axes[d] if d < len(axes) else n_dimensions // 2 + axes[d - len(axes)]
    kept = moved = 0
    for i in range(PAGE):
        if points[page, own, i] < cut:
            target, at = page, kept
            kept += 1
        else:
            target, at = new_page, moved
            moved += 1
        for dimension in range(n_dimensions):
            points[target, dimension, at] = points[page, dimension, i]
        page_ids[target, at] = page_ids[page, i]
    points[page, :, kept:] = NOWHERE
    page_ids[page, kept:] = -1
    sizes[page], sizes[new_page] = kept, moved


@kernel
def _fit_bounds(
    node: int,
    entry: int,
    axes: NDArray[np.int64],
    points: NDArray[np.int32],
    sizes: NDArray[np.int32],
    bounds: NDArray[np.int32],
    children: NDArray[np.int32],
) -> None:
    """Compute the bounds of the points of a page without links."""
    page, n_known = children[node, entry], len(axes)
    empty_bounds(node, entry, bounds)
    for d in range(2 * n_known):
        dimension = axes[d] if d < n_known else points.shape[1] // 2 + axes[d - n_known]
        for i in range(sizes[page]):
            bounds[node, LOW, d, entry] = min(bounds[node, LOW, d, entry], points[page, dimension, i])
            bounds[node, HIGH, d, entry] = max(bounds[node, HIGH, d, entry], points[page, dimension, i])
