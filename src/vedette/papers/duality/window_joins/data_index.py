"""The data index of SJ-Join: the rows of a window in Hilbert order and in the order of arrival.

Lim et al., sections 5.3 and 6. The paper uses a binary search tree and a linked list; here new rows are merged into an
ordered array, and expired rows are dropped from it. It is divided into data clusters, each with its region.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.hilbert import KEY_BITS, choose_bits, hilbert_keys
from vedette.operators.window_join.window_rows import GrowingArray, StreamRows
from vedette.papers.duality.window_joins.row_cells import RowCells

WORD = 64  # rows that are compared at once
NO_ROW = (1 << 31) - 1  # after the last


class Clusters(NamedTuple):
    """Cluster `c` has the rows `rows[c * n_dc:(c + 1) * n_dc]`, at `cells`, in the region from `lows` to `highs`."""

    n_dc: int
    n_rows: int
    rows: NDArray[np.int32]  # with room for one more word
    cells: NDArray[np.int32]  # (attributes, rows)
    lows: NDArray[np.int32]  # (attributes, clusters)
    highs: NDArray[np.int32]
    first_rows: NDArray[np.int64]  # the least, and the greatest, of each cluster
    last_rows: NDArray[np.int64]
    first_times: NDArray[Any]
    last_times: NDArray[Any]

    @property
    def n(self) -> int:
        """The number of clusters."""
        return len(self.first_rows)


class DataIndex:
    """Rows of a stream by Hilbert key; keys have enough bits for `n_expected` rows."""

    def __init__(self, cells: RowCells, rows: StreamRows, n_expected: int) -> None:
        self.cells = cells
        self._rows = rows
        self._n_bits = choose_bits(len(cells.attributes), n_expected)
        self._keys = GrowingArray(np.int64)
        self._order = np.empty(0, np.int32)  # row numbers
        self._first = rows.first

    @property
    def nbytes(self) -> int:
        return self.cells.nbytes + self._keys.nbytes + self._order.nbytes

    def update(self) -> None:
        """Add the new rows of the stream, and drop the expired ones."""
        self.cells.update()
        n_gone = min(self._rows.first - self._first, len(self._keys))
        self._keys.drop(n_gone)
        self._first = self._rows.first
        if n_gone:
            self._order = self._order[self._order >= self._first]
        n_old, n = len(self._keys), len(self._rows)
        if n_old == n:
            return
        self._keys.append(self._find_keys(n_old))
        keys = self._keys.values
        new = np.argsort(keys[n_old:], kind="stable") + n_old
        places = np.searchsorted(keys[self._order - self._first], keys[new], side="right")
        self._order = np.insert(self._order, places, (new + self._first).astype(np.int32))

    def cut(self, n_dc: int) -> Clusters:
        """All rows in clusters of `n_dc`."""
        places = self._order - np.int32(self._first)
        n = len(places)
        starts = np.arange(0, n, n_dc)
        cells = np.zeros((len(self.cells.attributes), n + WORD), np.int32)
        cells[:, :n] = self.cells.stack(places)
        rows = np.full(n + WORD, NO_ROW, np.int32)
        rows[:n] = self._order
        times = self._rows.times.values[places]
        return Clusters(
            n_dc,
            n,
            rows,
            cells,
            np.minimum.reduceat(cells[:, :n], starts, axis=1),
            np.maximum.reduceat(cells[:, :n], starts, axis=1),
            np.minimum.reduceat(self._order, starts).astype(np.int64),
            np.maximum.reduceat(self._order, starts).astype(np.int64),
            np.minimum.reduceat(times, starts),
            np.maximum.reduceat(times, starts),
        )

    def _find_keys(self, first: int) -> NDArray[np.int64]:
        """The keys of rows from a position on, on a grid over all cells."""
        cells = self.cells.stack(slice(first, None))[:KEY_BITS]
        if not len(cells):
            return np.zeros(cells.shape[1], np.int64)
        n_cells = np.array(self.cells.n_cells[:KEY_BITS], np.int64).reshape(-1, 1)
        return hilbert_keys(((cells.astype(np.int64) << self._n_bits) // n_cells).astype(np.int32), self._n_bits)
