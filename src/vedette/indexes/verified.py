"""An index on the one or two most selective axes; its candidates are checked on the others.

Best on three or more axes if one or two of them leave few candidates, such as a key and a range. Costs the inner index
and 8 bytes per box and further axis; a candidate costs about as much as a match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.buckets import Buckets
from vedette.indexes.estimates import BoxFacts, Estimate
from vedette.indexes.index import SEVERAL_FIELDS, as_boxes, as_cells, count_bytes
from vedette.indexes.keyed import Keyed
from vedette.indexes.quadtree import Quadtree
from vedette.native.budget import check_bytes
from vedette.native.buffers import output_int32
from vedette.native.damage import check, check_fields, check_shape, check_within
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch

CHUNK_ROWS = 1 << 16  # this many rows are looked up before their candidates are checked
AHEAD = 16  # candidates ahead for which the ends are prefetched


@dataclass(frozen=True)
class Verified:
    """Candidates are numbers of boxes; `ends[i, box]` is the box's first and last cell on axis `others[i]`."""

    n_fields: ClassVar[range] = SEVERAL_FIELDS
    wins_for: ClassVar[str] = "one or two selective fields among several"
    needs: ClassVar[str] = ""
    needs_points: ClassVar[bool] = False

    axes: NDArray[np.int64]  # those of the inner index, in its order
    others: NDArray[np.int64]
    inner: Buckets | Keyed | Quadtree
    ends: NDArray[np.int32]
    ids: NDArray[np.int32]

    @classmethod
    def build(
        cls,
        firsts: NDArray[np.int32],
        lasts: NDArray[np.int32],
        ids: NDArray[np.int32],
        n_cells: Sequence[int],
        axes: Sequence[int] | None = None,
    ) -> Self:
        """Index boxes on any number of axes. `axes` are those of the inner index; by default, they are chosen."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        chosen = choose_axes(firsts, lasts, n_cells) if axes is None else list(axes)
        inner_class = _inner_class(len(chosen), bool((firsts[chosen[0]] == lasts[chosen[0]]).all()))
        numbers = np.arange(len(ids), dtype=np.int32)
        inner = inner_class.build(firsts[chosen], lasts[chosen], numbers, [n_cells[axis] for axis in chosen])
        others = [axis for axis in range(len(n_cells)) if axis not in chosen]
        ends = np.stack([firsts[others], lasts[others]], axis=2)
        return cls(np.array(chosen, np.int64), np.array(others, np.int64), inner, ends, ids)

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        found: list[Estimate] = []
        for axes in [*((axis,) for axis in facts.axes), *facts.pairs()]:
            n_others = len(facts.axes) - len(axes)
            if n_others:
                inner_class = _inner_class(len(axes), facts.is_point[axes[0]])
                some = facts.on(axes)
                met = some.matches
                check_cost = 10 + met * (2.5 + 0.7 * n_others)
                left = f"leaves about {met:,.1f} of {facts.n:,} boxes to check"
                reason = f"{inner_class.__name__} on {len(axes)} of {len(facts.axes)} fields {left}"
                for inner in inner_class.estimate(some):
                    found.append(Estimate(axes, inner.nanoseconds + check_cost, reason, inner_class.__name__))
        return found

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)
        n_rows = cells.shape[1]
        if n_rows <= CHUNK_ROWS:
            return Matches(*self._match_chunk(cells))
        chunks, n_found = [], 0
        for row in range(0, n_rows, CHUNK_ROWS):
            chunks.append(self._match_chunk(cells[:, row : row + CHUNK_ROWS]))
            n_found += len(chunks[-1][1])
            check_bytes(4 * n_found)
        starts = np.zeros(n_rows + 1, np.int64)
        positions = output_int32(n_found)
        row = at = 0
        for chunk_starts, found in chunks:
            starts[row : row + len(chunk_starts)] = chunk_starts + at
            positions[at : at + len(found)] = found
            row, at = row + len(chunk_starts) - 1, at + len(found)
        return Matches(starts, positions)

    def _match_chunk(self, cells: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        candidates = self.inner.match(cells[self.axes])
        n = _verify(as_cells(cells), self.others, candidates.starts, candidates.positions, self.ends, self.ids)
        kept = candidates.positions[:n]
        return candidates.starts, kept if 2 * n >= len(candidates.positions) else kept.copy()

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(self.axes.ndim == self.others.ndim == 1, "the axes of an index are not those of its boxes")
        axes = [*self.axes.tolist(), *self.others.tolist()]
        check(sorted(axes) == list(range(len(n_cells))), "the axes of an index are not those of its boxes")
        check_shape(self.ids, (len(self.ids),), "the ids of boxes")
        check_within(self.ids, ids.start, ids.stop - 1, "the ids of boxes")
        check_shape(self.ends, (len(self.others), len(self.ids), 2), "the ends of boxes")
        self.inner.validate([n_cells[axis] for axis in self.axes.tolist()], range(len(self.ids)))

    def has_boxes(self, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32]) -> bool:
        """Whether the index has exactly these boxes."""
        same = (self.ids, ids), (self.ends[..., 0], firsts[self.others]), (self.ends[..., 1], lasts[self.others])
        return all(np.array_equal(own, given) for own, given in same)

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def _inner_class(n_axes: int, is_keyed: bool) -> type[Buckets] | type[Keyed] | type[Quadtree]:
    return Buckets if n_axes == 1 else Keyed if is_keyed else Quadtree


def choose_axes(firsts: NDArray[np.int32], lasts: NDArray[np.int32], n_cells: Sequence[int]) -> list[int]:
    """The axes that leave the fewest candidates: one, or two if the second leaves less than half as many."""
    shares = [
        float((lasts[axis].astype(np.float64) - firsts[axis] + 1).mean()) / n if firsts.shape[1] else 1.0
        for axis, n in enumerate(n_cells)
    ]
    ranked = sorted(range(len(n_cells)), key=shares.__getitem__)
    points = [axis for axis in ranked if (firsts[axis] == lasts[axis]).all()]
    if points:
        ranked.remove(points[0])
        ranked.insert(0, points[0])
    return ranked[:2] if len(ranked) > 1 and shares[ranked[1]] < 0.5 else ranked[:1]


@kernel
def _verify(
    cells: NDArray[np.int32],
    axes: NDArray[np.int64],
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    ends: NDArray[np.int32],
    ids: NDArray[np.int32],
) -> int:
    """Keep the candidates that contain the row, compacted and converted to ids. Returns their number."""
    out = np.int64(0)
    first = np.int64(0)
    for row in range(cells.shape[1]):
        # Axis by axis, so that each loop is short and without branches, and the next one has fewer candidates.
        begin, low, high = out, first, starts[row + 1]
        first = high
        for axis in range(len(axes)):
            cell = cells[axes[axis], row]
            out = begin
            for j in range(low, high):
                if axis == 0 and j + AHEAD < len(positions):
                    prefetch(ends, 2 * np.int64(positions[j + AHEAD]))
                box = positions[j]
                positions[out] = box
                out += (ends[axis, box, 0] <= cell) & (cell <= ends[axis, box, 1])
            low, high = begin, out
        for j in range(high - low):
            positions[begin + j] = ids[positions[low + j]]
        out = begin + high - low
        starts[row + 1] = out
    return int(out)
