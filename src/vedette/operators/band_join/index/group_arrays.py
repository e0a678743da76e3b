"""The arrays of stabbing groups, in the tuples that kernels take. They are replaced only when an array grows.

Kernels get them as plain tuples (see `plain_tuple`), so they unpack them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class BandsByName(NamedTuple):
    """Bands by name, a small integer."""

    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    group_of: NDArray[np.int32]  # -1 where there is no such band
    is_witness: NDArray[np.bool_]


class GroupTable(NamedTuple):
    """What is known of each group. Its cover is the union of its bands, wider by one double at both ends."""

    points: NDArray[np.float64]  # a point that all bands of the group contain
    cover_lows: NDArray[np.float64]  # NaN where a band is unbounded
    cover_highs: NDArray[np.float64]
    singles: NDArray[np.int32]  # the name of the only band, or -1
    starts: NDArray[np.int32]  # where its lists start
    sizes: NDArray[np.int32]
    rooms: NDArray[np.int32]  # how long its lists can become there


class PointOrder(NamedTuple):
    """Groups in the order of their points."""

    points: NDArray[np.float64]
    groups: NDArray[np.int32]


class BandLists(NamedTuple):
    """The lists of all groups: bands by lower end, ascending, and by upper end, descending."""

    lows: NDArray[np.float64]
    low_names: NDArray[np.int32]
    highs: NDArray[np.float64]
    high_names: NDArray[np.int32]


# Values in order, and their names.
OrderedValues = tuple[NDArray[np.float64], NDArray[np.int32]]
# How far a look-up is: the next shift, the next group (or value) for it, and the number of pairs written.
Progress = tuple[int, int, int]
