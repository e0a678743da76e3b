"""Direct lists: boxes on one axis, listed under every place that they cover.

The Dlist of Wu, Chen and Yu, section 2.5: a row costs one look-up and one copy, the least of all, and a box 4 bytes per
place, the most of all. This index exists for comparison; `Lists` is the same over cells, built once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.papers.constructs.construct_intervals import SCI


@dataclass
class Dlist(SCI):
    """Construct intervals of one place each, over all places."""

    @classmethod
    def choose(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        borders: NDArray[np.int64],
        n_places: int | None = None,
    ) -> tuple[int, int]:
        return 1, n_places or len(borders)
