"""The directory of a multilevel grid file: regions of the transform space that are cut in two (see `grid_file`).

A directory page has up to `FANOUT` entries, each a region and its content: a page of points, or a directory page of the
next level. Regions of a page are disjoint, and their union is the region of the page. A full directory page is cut on
the way down, between its regions, so there is always room above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

FANOUT = 64  # entries, which are compared at once
NOWHERE = np.iinfo(np.int32).max  # above every cell
ROOT, N_PAGES, N_DIRECTORIES, N_POINTS, N_REMOVED = 0, 1, 2, 3, 4  # in `counts`
LOW, HIGH = 0, 1


class Directory(NamedTuple):
    """The directory pages of a grid file (see `MLGF`)."""

    axes: NDArray[np.int64]
    regions: NDArray[np.int32]
    bounds: NDArray[np.int32]
    children: NDArray[np.int32]
    n_entries: NDArray[np.int32]
    levels: NDArray[np.int32]
    counts: NDArray[np.int64]


@kernel
def find_entry(corner: NDArray[np.int32], node: int, regions: NDArray[np.int32], n_entries: NDArray[np.int32]) -> int:
    """The entry of the directory page whose region contains the point."""
    for entry in range(n_entries[node]):
        holds = True
        for d in range(len(corner)):
            if not (regions[node, LOW, d, entry] <= corner[d] <= regions[node, HIGH, d, entry]):
                holds = False
                break
        if holds:
            return entry
    return -1


@kernel
def widen(corner: NDArray[np.int32], node: int, entry: int, bounds: NDArray[np.int32]) -> None:
    for d in range(len(corner)):
        bounds[node, LOW, d, entry] = min(bounds[node, LOW, d, entry], corner[d])
        bounds[node, HIGH, d, entry] = max(bounds[node, HIGH, d, entry], corner[d])


@kernel
def raise_root(
    regions: NDArray[np.int32],
    bounds: NDArray[np.int32],
    children: NDArray[np.int32],
    n_entries: NDArray[np.int32],
    levels: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> int:
    """Add a new root above the old one, which is full, and cut the old one."""
    old, new = counts[ROOT], counts[N_DIRECTORIES]
    counts[N_DIRECTORIES] += 1
    counts[ROOT] = new
    levels[new], n_entries[new], children[new, 0] = levels[old] + 1, 1, old
    for d in range(regions.shape[2]):
        regions[new, LOW, d, 0], regions[new, HIGH, d, 0] = regions[old, LOW, d].min(), regions[old, HIGH, d].max()
    cut_directory(new, 0, regions, bounds, children, n_entries, levels, counts)
    return int(new)


@kernel
def cut_directory(
    node: int,
    entry: int,
    regions: NDArray[np.int32],
    bounds: NDArray[np.int32],
    children: NDArray[np.int32],
    n_entries: NDArray[np.int32],
    levels: NDArray[np.int32],
    counts: NDArray[np.int64],
) -> None:
    """Cut a full directory page, the child of an entry, between its regions, as evenly as possible.

    Such a place exists: the page was one region, and its first cut is one.
    """
    child, new = children[node, entry], counts[N_DIRECTORIES]
    counts[N_DIRECTORIES] += 1
    best, best_cut, most_even = 0, 0, 0
    for d in range(regions.shape[2]):
        for candidate in range(FANOUT):
            cut = regions[child, LOW, d, candidate]
            below = crossed = 0
            for other in range(FANOUT):
                below += regions[child, HIGH, d, other] < cut
                crossed += regions[child, LOW, d, other] < cut <= regions[child, HIGH, d, other]
            even = min(below, FANOUT - below)
            if crossed == 0 and even > most_even:
                best, best_cut, most_even = d, cut, even
    new_entry = cut_entry(node, entry, best, best_cut, regions, bounds, children, n_entries)
    children[node, new_entry] = new
    levels[new] = levels[child]
    kept = moved = 0
    for i in range(FANOUT):
        if regions[child, HIGH, best, i] < best_cut:
            target, at = np.int64(child), kept
            kept += 1
        else:
            target, at = new, moved
            moved += 1
        regions[target, :, :, at] = regions[child, :, :, i]
        bounds[target, :, :, at] = bounds[child, :, :, i]
        children[target, at] = children[child, i]
    n_entries[child], n_entries[new] = kept, moved
    for i in range(kept, FANOUT):
        empty_bounds(child, i, bounds)
    for i in range(moved, FANOUT):
        empty_bounds(new, i, bounds)
    for d in range(regions.shape[2]):
        bounds[node, LOW, d, entry] = bounds[child, LOW, d].min()
        bounds[node, HIGH, d, entry] = bounds[child, HIGH, d].max()
        bounds[node, LOW, d, new_entry] = bounds[new, LOW, d].min()
        bounds[node, HIGH, d, new_entry] = bounds[new, HIGH, d].max()


@kernel
def cut_entry(
    node: int,
    entry: int,
    dimension: int,
    cut: int,
    regions: NDArray[np.int32],
    bounds: NDArray[np.int32],
    children: NDArray[np.int32],
    n_entries: NDArray[np.int32],
) -> int:
    """Add an empty entry to the directory page for the upper part of an entry's region."""
    new = n_entries[node]
    n_entries[node] += 1
    regions[node, :, :, new] = regions[node, :, :, entry]
    regions[node, HIGH, dimension, entry] = cut - 1
    regions[node, LOW, dimension, new] = cut
    empty_bounds(node, new, bounds)
    return int(new)


@kernel
def empty_bounds(node: int, entry: int, bounds: NDArray[np.int32]) -> None:
    bounds[node, LOW, :, entry] = NOWHERE
    bounds[node, HIGH, :, entry] = -1
