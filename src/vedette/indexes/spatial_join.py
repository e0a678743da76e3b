"""Spatial join windows: the boxes of a multilevel grid file that overlap a region (Lim et al., sections 5.2 and 5.5).

In the transform space a box is a point, its first and last cells. Boxes that overlap a region lie in its spatial join
window (definition 3), [0, highs] x [lows, the last cell]: they begin before the region ends, and end after it begins.
With a region of one row, this is SJ-Immediate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.grid_file_directory import FANOUT, ROOT, Directory
from vedette.indexes.grid_file_pages import PAGE, Pages
from vedette.native.bits import lowest_one, without_lowest
from vedette.native.compared import find_at_least, find_at_most
from vedette.native.kernels import kernel


@kernel
def find_pages(
    lows: NDArray[np.int32],
    highs: NDArray[np.int32],
    nexts: NDArray[np.int32],
    directory: Directory,
    stack: NDArray[np.int32],
    pages: NDArray[np.int32],
) -> int:
    """Write the pages that may have points in the spatial join window of a region. Returns their number."""
    axes, bounds, children = directory.axes, directory.bounds, directory.children
    levels, counts = directory.levels, directory.counts
    n_known = len(axes)
    n = 0
    stack[0] = counts[ROOT]
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        word = np.int64(-1)
        for i in range(n_known):
            least_first, greatest_last = 4 * n_known * node + i, (4 * node + 3) * n_known + i
            word &= find_at_most(bounds, FANOUT * least_first, highs[axes[i]])
            word &= find_at_least(bounds, FANOUT * greatest_last, lows[axes[i]])
            if word == 0:
                break
        while word != 0:
            child = children[node, lowest_one(word)]
            word = without_lowest(word)
            if levels[node] > 0:
                stack[top] = child
                top += 1
            else:
                while child >= 0:
                    pages[n] = child
                    n += 1
                    child = nexts[child]
    return n


@kernel
def meet_page(page: int, lows: NDArray[np.int32], highs: NDArray[np.int32], points: NDArray[np.int32]) -> np.int64:
    """The bits of the points of a page that lie in the spatial join window."""
    n_axes = len(lows)
    word = np.int64(-1)
    for axis in range(n_axes):
        first = PAGE * (2 * n_axes * page + axis)
        word &= find_at_most(points, first, highs[axis])
        word &= find_at_least(points, first + PAGE * n_axes, lows[axis])
        if word == 0:
            break
    return word


@kernel
def fill_windows(
    lows: NDArray[np.int32],
    highs: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    most: int,
    own_pages: Pages,
    directory: Directory,
) -> int:
    """Write the ids in the window of each region from `done` on while there is room. Returns where it stopped."""
    points, page_ids, nexts = own_pages.points, own_pages.page_ids, own_pages.nexts
    n_axes, n_regions = lows.shape
    stack, pages = np.empty(len(directory.children) + 1, np.int32), np.empty(len(points), np.int32)
    low, high = np.empty(n_axes, np.int32), np.empty(n_axes, np.int32)
    out = starts[done]
    for region in range(done, n_regions):
        if len(positions) - out < most:
            return region
        for axis in range(n_axes):
            low[axis], high[axis] = lows[axis, region], highs[axis, region]
        n_pages = find_pages(low, high, nexts, directory, stack, pages)
        for page in pages[:n_pages]:
            word = meet_page(page, low, high, points)
            while word != 0:
                positions[out] = page_ids[page, lowest_one(word)]
                out += 1
                word = without_lowest(word)
        starts[region + 1] = out
    return int(n_regions)


@kernel
def count_pages(
    lows: NDArray[np.int32],
    highs: NDArray[np.int32],
    nexts: NDArray[np.int32],
    directory: Directory,
) -> NDArray[np.int64]:
    """How many pages may have points in the window of each region."""
    n_axes, n_regions = lows.shape
    stack, pages = np.empty(len(directory.children) + 1, np.int32), np.empty(len(nexts), np.int32)
    low, high = np.empty(n_axes, np.int32), np.empty(n_axes, np.int32)
    found = np.empty(n_regions, np.int64)
    for region in range(n_regions):
        for axis in range(n_axes):
            low[axis], high[axis] = lows[axis, region], highs[axis, region]
        found[region] = find_pages(low, high, nexts, directory, stack, pages)
    return found
