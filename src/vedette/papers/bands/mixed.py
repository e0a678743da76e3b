"""The paper's main structure: less than quadratic in size, less than linear in time.

Theorem 1, by section 2: of the sorted ends of bands every 2r-th is picked. A stabbing set answers for the bands that
contain a picked end (Lemma 6). The other bands are between picked ends, at most r in each gap, and values are divided
into pieces of r. Pieces and gaps are merged, and where they meet, a table answers for the piece and the gap (Lemma 2).
Such a table depends only on the order of the ends of `bands - values`, so pieces and gaps with the same order share it.
With r about log(mn) / log log(mn): o(mn) size and o(m + n) + O(k) time. Of theoretical interest, as the paper says:
constants are large, and the number of orders grows like r^O(r).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vedette.indexes.index import count_bytes
from vedette.native.kernels import kernel
from vedette.papers.bands.index import Pairs
from vedette.papers.bands.order_tables import Ends, OrderTables, Tables, find_slot
from vedette.papers.bands.stabbing_set import StabbingSet

SHARE = 0.5  # the constant c of section 2.3


class Pieces(NamedTuple):
    """Ordered values; piece `i` holds `values[i * r:(i + 1) * r]`."""

    values: NDArray[np.float64]
    names: NDArray[np.int32]


class BandGaps(NamedTuple):
    """The bands that contain no picked end; gap `j` has the bands `starts[j]` to `starts[j + 1]`."""

    ends: Ends
    names: NDArray[np.int32]
    starts: NDArray[np.int64]
    table_of: NDArray[np.int32]  # the table of each piece and gap


@dataclass(frozen=True)
class Mixed:
    """A stabbing set for the bands that contain a picked end, and tables for the others."""

    r: int
    stabbed: StabbingSet
    stabbed_names: NDArray[np.int32]  # positions of the bands of `stabbed`
    pieces: Pieces
    gaps: BandGaps
    tables: Tables

    @classmethod
    def build(
        cls,
        values: NDArray[np.float64],
        lows: NDArray[np.float64],
        highs: NDArray[np.float64],
        r: int | None = None,
    ) -> Self:
        r = r or choose_r(len(values), len(lows))
        picked = np.sort(np.concatenate([lows, highs]))[2 * r - 1 :: 2 * r]
        gaps = np.searchsorted(picked, lows)  # the number of picked ends below a band
        is_stabbed = gaps < np.searchsorted(picked, highs, side="right")
        stabbed_names = np.flatnonzero(is_stabbed).astype(np.int32)
        others = np.flatnonzero(~is_stabbed)
        others = others[np.argsort(gaps[others], kind="stable")]
        gap_starts = np.append(np.flatnonzero(np.diff(gaps[others], prepend=-1)), len(others))
        order = np.argsort(values).astype(np.int32)
        tables, table_of = OrderTables().list_all(values[order], lows[others], highs[others], gap_starts, r)
        return cls(
            r,
            StabbingSet.build(values, lows[is_stabbed], highs[is_stabbed]),
            stabbed_names,
            Pieces(values[order], order),
            BandGaps(Ends(lows[others], highs[others]), others.astype(np.int32), gap_starts, table_of),
            tables,
        )

    def pairs(self, shift: float) -> Pairs:
        values, bands = self.stabbed.pairs(shift)
        none = np.empty(0, np.int32)
        n = self._merge(shift, False, none, none)
        more_values, more_bands = np.empty(n, np.int32), np.empty(n, np.int32)
        self._merge(shift, False, more_values, more_bands)
        return np.concatenate([values, more_values]), np.concatenate([self.stabbed_names[bands], more_bands])

    def affected(self, shift: float) -> NDArray[np.int32]:
        bands = np.empty(len(self.gaps.names), np.int32)
        n = self._merge(shift, True, np.empty(0, np.int32), bands)
        return np.concatenate([self.stabbed_names[self.stabbed.affected(shift)], bands[:n]])

    def _merge(self, shift: float, each_once: bool, values_out: NDArray[np.int32], bands_out: NDArray[np.int32]) -> int:
        return _merge(shift, each_once, self.r, self.pieces, self.gaps, self.tables, values_out, bands_out)

    @property
    def n_entries(self) -> int:
        own = len(self.pieces.values) + len(self.gaps.names) + self.gaps.table_of.size
        return own + len(self.tables.events) + len(self.tables.pairs) + self.stabbed.n_entries

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def choose_r(n_values: int, n_bands: int) -> int:
    """The r of section 2.3."""
    bits = math.log2(max(4, n_values * n_bands))
    return max(1, round(SHARE * bits / math.log2(bits)))


@kernel
def _merge(
    shift: float,
    each_once: bool,
    r: int,
    pieces: Pieces,
    gaps: BandGaps,
    tables: Tables,
    values_out: NDArray[np.int32],
    bands_out: NDArray[np.int32],
) -> int:
    """Merge pieces and gaps, and write as many pairs as there is room for; how many there are.

    With `each_once` only bands, and each once: the pieces that a gap meets are neighbours.
    """
    values, lows, highs, starts = pieces.values, gaps.ends.lows, gaps.ends.highs, gaps.starts
    table_of, slot_starts, pairs = gaps.table_of, tables.slot_starts, tables.pairs
    n, piece, gap = 0, 0, 0
    n_pieces, n_gaps = table_of.shape
    is_written = np.zeros(r + 1, np.bool_)
    while piece < n_pieces and gap < n_gaps:
        begin, end = piece * r, min((piece + 1) * r, len(values))
        first, last = starts[gap], starts[gap + 1]
        least, greatest = values[begin] + shift, values[end - 1] + shift
        low, high = np.min(lows[first:last]), np.max(highs[first:last])
        if least <= high and low <= greatest:
            table = table_of[piece, gap]
            slot = find_slot(shift, values[begin:], gaps.ends, first, last, tables, table)
            for i in range(slot_starts[slot], slot_starts[slot + 1]):
                value, band = pairs[i] // (last - first), pairs[i] % (last - first)
                if each_once and is_written[band]:
                    continue
                is_written[band] = True
                if n < len(values_out):
                    values_out[n] = pieces.names[begin + value]
                if n < len(bands_out):
                    bands_out[n] = gaps.names[first + band]
                n += 1
        if greatest > high:
            gap += 1
            is_written[:] = False
        else:
            piece += 1
    return n
