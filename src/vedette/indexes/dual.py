"""Boxes in two indexes: one for single rows, and a multilevel grid file with which a large batch is joined.

Rows and boxes are dual (Lim et al., section 5): a few rows are looked up among the boxes, but a batch is cut into
clusters of rows that are close to each other, and boxes are looked up among these. The more rows a batch has, the
smaller are the regions of its clusters, and the fewer boxes overlap one. Best for batches of thousands of rows if a
single row takes a microsecond or more: many wide boxes on many axes. Costs the first index and about 12 bytes per box
and axis. Which index answers is decided for each batch from a sample of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.bitmaps import Bitmaps
from vedette.indexes.estimates import BoxFacts, Estimate
from vedette.indexes.grid_file import MLGF
from vedette.indexes.hilbert import hilbert_order
from vedette.indexes.index import ANY_FIELDS, Index, Validated, as_cells, count_bytes
from vedette.native.damage import check, check_fields

MIN_ROWS = 1024  # of a batch that may be joined
EVERY = 4  # one of this many rows is examined to decide


@dataclass(frozen=True)
class Dual:
    """`by_row` and `by_batch` have the same boxes. A row takes `nanoseconds` in the first."""

    n_fields: ClassVar[range] = ANY_FIELDS
    wins_for: ClassVar[str] = "large batches, if a single row takes long"
    needs: ClassVar[str] = ""
    needs_points: ClassVar[bool] = False

    by_row: Index
    by_batch: MLGF
    nanoseconds: float

    @classmethod
    def build(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        ids: NDArray[np.int32],
        n_cells: Sequence[int],
        by_row: Index | None = None,
        nanoseconds: float | None = None,
    ) -> Self:
        """Index boxes on any number of axes. `by_row` is an index of the same boxes, by default `Bitmaps`."""
        if by_row is None:
            by_row = Bitmaps.build(firsts, lasts, ids, n_cells)
        if nanoseconds is None:
            nanoseconds = len(ids) * len(n_cells) / 64  # a word of bits for each axis
        return cls(by_row, MLGF.build(firsts, lasts, ids, n_cells), nanoseconds)

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        """No estimates: the planner adds a grid file to the index that it has chosen."""
        return []

    def match(self, cells: NDArray[np.int32]) -> Matches:
        n_dc = self.find_cluster_size(cells)
        return self.by_row.match(cells) if n_dc is None else self.by_batch.match_batch(cells, n_dc)

    def find_cluster_size(self, cells: NDArray[np.int32]) -> int | None:
        """The size of data clusters in which a row takes less time than alone, or None."""
        return None if cells.shape[1] < MIN_ROWS else self._choose(cells[:, ::EVERY])

    def decide(self, some: NDArray[np.int32]) -> Index:
        """The index that answers about a batch, whatever pieces it is cut into. `some` is one in `EVERY` of its rows.

        The order of a row's matches depends on the index, but not on the piece.
        """
        n_dc = None if some.shape[1] < MIN_ROWS // EVERY else self._choose(some)
        return self.by_row if n_dc is None else cast(Index, _Joined(self.by_batch, n_dc))

    def _choose(self, some: NDArray[np.int32]) -> int | None:
        some = as_cells(some)
        n_dc, nanoseconds = self.by_batch.choose_cluster_size(some, hilbert_order(some), EVERY)
        return n_dc if nanoseconds < self.nanoseconds else None

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(hasattr(self.by_row, "validate") and not isinstance(self.by_row, Dual), "no index answers row by row")
        cast(Validated, self.by_row).validate(n_cells, ids)
        self.by_batch.validate(n_cells, ids)

    def has_boxes(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> bool:
        """Whether both have these boxes, as far as that can be checked."""
        by_row: Any = self.by_row
        return bool(
            (not hasattr(by_row, "has_boxes") or by_row.has_boxes(firsts, lasts, ids))
            and self.by_batch.has_boxes(firsts, lasts, ids)
        )

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


@dataclass(frozen=True)
class _Joined:
    """A grid file with which every piece of a batch is joined, in data clusters of `n_dc` rows."""

    grid_file: MLGF
    n_dc: int

    def match(self, cells: NDArray[np.int32]) -> Matches:
        return self.grid_file.match_batch(cells, self.n_dc)

    @property
    def nbytes(self) -> int:
        return self.grid_file.nbytes
