"""Places: runs of cells of an axis within which no box begins or ends.

Virtual constructs need an integer domain (Wu, Chen and Yu, sections 2.1 and 3.1), and places are the shortest one that
separates all boxes. If it is still too long, places are merged, boxes are extended to whole places, as the paper does
with ends that are not integers, and matches are compared with the boxes themselves. The same is done while there are
newer boxes that do not fit the places. The paper's domain is fixed; here places are rebuilt after many insertions (see
`rebuilt_boxes`), and then also where there are no boxes yet, to make room for later ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_ROOM = 4  # cells: a place may have this many even if there are as many boxes as cells


class ExactBoxes(NamedTuple):
    """The ends of boxes, for comparison with rows unless all boxes begin and end with places."""

    fit_places: bool
    firsts: NDArray[np.int32]
    lasts: NDArray[np.int32]


def find_borders(
    firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: int, with_room: bool = False
) -> NDArray[np.int64]:
    """The first cell of each place, for boxes on one axis.

    `with_room` makes room for later boxes anywhere: no place has more cells than there are cells per box.
    """
    begins = np.zeros(n_cells + 1, np.bool_)
    begins[0] = True
    begins[firsts] = True
    begins[lasts + 1] = True
    borders = np.flatnonzero(begins[:n_cells])
    if not with_room:
        return borders
    most = max(LEAST_ROOM, -(-n_cells // max(len(firsts), 1)))
    lengths = np.diff(np.append(borders, n_cells))
    more = np.arange(0, n_cells, most)
    too_long = lengths[np.searchsorted(borders, more, "right") - 1] > most
    return np.union1d(borders, more[too_long])


def make_places(borders: NDArray[np.int64], n_cells: int, n_places: int) -> NDArray[np.int32]:
    """The place of each cell, with at most `n_places` places: if there are more borders, only every n-th is kept."""
    kept = borders if len(borders) <= n_places else borders[:: -(-len(borders) // n_places)]
    begins = np.zeros(n_cells, np.int32)
    begins[kept[1:]] = 1
    return np.cumsum(begins, dtype=np.int32)


def find_misfits(places: NDArray[np.int32], firsts: NDArray[np.int32], lasts: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each box on one axis begins or ends within a place."""
    last = len(places) - 1
    begins: NDArray[np.bool_] = (firsts > 0) & (places[firsts] == places[np.maximum(firsts - 1, 0)])
    ends: NDArray[np.bool_] = (lasts < last) & (places[lasts] == places[np.minimum(lasts + 1, last)])
    return begins | ends
