"""The moments of rows: what now() means when a key is compared at a row.

A row is repeated, with a later moment, where a bound that moves with now() passes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RowMoments:
    """Columns by row, numbered as moves number them."""

    moments: NDArray[np.int64]
    is_repeated: NDArray[np.bool_]  # the row before it, with a later moment

    def take(self, rows: NDArray[Any]) -> RowMoments:
        return RowMoments(self.moments[rows], self.is_repeated[rows])

    def slices(self, first: slice, second: slice) -> RowMoments:
        """Two ranges of rows."""
        moments = np.concatenate([self.moments[first], self.moments[second]])
        return RowMoments(moments, np.concatenate([self.is_repeated[first], self.is_repeated[second]]))

    def are_repeated(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these rows is repeated; -1 is no row."""
        if not len(self.is_repeated):
            return np.zeros(len(rows), np.bool_)
        return (rows >= 0) & self.is_repeated[rows]
