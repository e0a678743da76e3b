"""The choice of L, the greatest length of a virtual construct, and of the number of places, from the widths of boxes.

Wu, Chen and Yu find the best L by experiments and see that it grows with the widths (section 3.5). Short constructs
mean many listings of a wide box; long ones mean many lists to store and to read, most of them empty. Both can be
predicted, so time and memory are estimated for each L, and the smallest product wins. If memory is short, places are
merged; then the matches are only candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONGEST = 256
FEWEST = 8  # places on an axis if borders are merged
SAMPLE = 1024  # boxes
BYTES_PER_BOX, BYTES_ALWAYS = 300, 1 << 16  # allowed memory, per axis of a box and in addition
# Nanoseconds on one core of the machine of docs/benchmarks.md; only their ratios matter.
ROW_COST, COPY_COST, CHECK_COST = 10.0, 0.4, 7.0
PROBE_COST = 3.5, 1.3  # a construct that covers a place, on one axis, where most have boxes, and on two axes
WORD_COST, USED_COST = 1.5, 4.0  # 64 bits of a vector, and a construct whose bit is set
LIST_BYTES, USED_BYTES, ENTRY_BYTES, BORDER_BYTES = 8, 4, 4, 8


@dataclass(frozen=True)
class Model:
    """Counts of constructs: those that make up a width, start at a place, cover a place; squared in two dimensions."""

    count_parts: Callable[[NDArray[np.float64], int], NDArray[np.float64]]
    count_lists: Callable[[int], int]
    count_covering: Callable[[int], int]
    has_bits: bool = False  # bits show which constructs have boxes; the others take no memory and no time


@dataclass(frozen=True)
class Shape:
    """A choice: the greatest length of constructs, the number of places on each axis, and the estimated costs."""

    longest: int
    n_places: tuple[int, ...]
    nanoseconds: float
    n_bytes: float  # in total

    @property
    def product(self) -> float:
        return self.nanoseconds * self.n_bytes


def choose_shape(model: Model, n_borders: Sequence[int], widths: NDArray[np.float64], n_boxes: int) -> Shape:
    """The best choice for `n_boxes`, of which `widths` (axes, boxes) is a sample.

    Widths are numbers of places if all of the `n_borders` of each axis separate places.
    """
    powers = [1 << power for power in range(32)]
    room = BYTES_PER_BOX * len(n_borders) * n_boxes + BYTES_ALWAYS
    shapes: list[Shape] = []
    for coarser in powers:
        shapes = sweep_lengths(model, n_borders, widths, n_boxes, coarser)
        fitting = [shape for shape in shapes if shape.n_bytes <= room]
        if fitting or coarser * FEWEST > max(n_borders):
            return min(fitting or shapes, key=lambda shape: shape.product)
    raise AssertionError("an axis has fewer than 2^32 borders")


def sweep_lengths(
    model: Model, n_borders: Sequence[int], widths: NDArray[np.float64], n_boxes: int, coarser: int = 1
) -> list[Shape]:
    """The candidates for all lengths, which are powers of two, with `coarser` borders per place."""
    lengths = [1 << power for power in range(LONGEST.bit_length()) if 1 << power <= max(1, max(n_borders) // coarser)]
    return [estimate(model, longest, coarser, n_borders, widths, n_boxes) for longest in lengths]


def estimate(
    model: Model, longest: int, coarser: int, n_borders: Sequence[int], widths: NDArray[np.float64], n_boxes: int
) -> Shape:
    """Time and memory with constructs of up to `longest` places, each of `coarser` borders."""
    n_axes = len(n_borders)
    n_places = tuple(max(1, -(-n // coarser)) for n in n_borders)
    limits = np.array(n_places, np.float64)[:, None]
    own = np.minimum(np.maximum(np.ceil(widths / coarser), 1.0), limits)
    n_entries = n_boxes * float(np.prod(model.count_parts(own, longest), axis=0).mean())
    n_found = n_boxes * float(np.prod(own / limits, axis=0).mean())
    n_lists = float(np.prod(limits + longest - 1)) * model.count_lists(longest) ** n_axes
    n_bytes = n_boxes * (8 * n_axes + 4) + ENTRY_BYTES * n_entries + BORDER_BYTES * sum(n_borders)
    nanoseconds = ROW_COST + (COPY_COST if coarser == 1 else CHECK_COST) * n_found
    n_covering = model.count_covering(longest) ** n_axes
    if model.has_bits:
        in_use = -np.expm1(-n_entries / n_lists)  # the share of lists that are not empty, if listings are random
        n_words = (longest * model.count_lists(longest) ** n_axes / 64 + 1) * longest ** (n_axes - 1)
        nanoseconds += USED_COST * in_use * n_covering + WORD_COST * n_words
        n_bytes += (USED_BYTES * in_use + 0.25) * n_lists
    else:
        nanoseconds += PROBE_COST[n_axes - 1] * n_covering
        n_bytes += LIST_BYTES * n_lists
    return Shape(longest, n_places, nanoseconds, n_bytes)


def count_simple_parts(widths: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """Simple construct intervals: as many of the greatest length as fit, and one for the remainder."""
    return np.ceil(widths / longest)


def count_logarithmic_parts(widths: NDArray[np.float64], longest: int) -> NDArray[np.float64]:
    """Logarithmic ones: for the remainder one for each set bit of its length."""
    whole, rest = np.divmod(widths.astype(np.int64), longest)
    return (whole + np.bitwise_count(rest)).astype(np.float64)
