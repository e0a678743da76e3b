"""Boxes of one cell on axis 0 and a range on axis 1, in one sorted run per key: `symbol = 'IBM' AND price < 40`.

Best if all ranges are one-sided in the same direction. The boxes of a key are sorted by how far they reach from one
end of axis 1, and a row reads them, eight at once, until they do not reach it any more: little more than it matches.
Costs 8 bytes per box, and at least 64 per key; half as much again if ranges are two-sided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from vedette.data.matches import Matches
from vedette.indexes.estimates import SAMPLE, BoxFacts, Estimate, miss_cost
from vedette.indexes.growth import collect
from vedette.indexes.index import TWO_FIELDS, as_boxes, as_cells, count_bytes, sample_boxes
from vedette.native.buffers import empty_int32
from vedette.native.damage import check, check_fields, check_shape, check_starts, check_within
from vedette.native.kernels import kernel
from vedette.native.prefetch import prefetch
from vedette.native.vectors import copy_eight, count_reaching

LANES = 8  # boxes in a block
FAR, NEAR = 24, 12  # rows ahead for which a key and its first block are prefetched
NOWHERE = -1  # how far the spare boxes of a block reach


@dataclass(frozen=True)
class KeyedRuns:
    """The blocks of the key with cell `c` go from `key_blocks[c]` to `key_blocks[c + 1]`.

    A block says of eight boxes how far from `origin` on axis 1 they end, farthest first; unless all begin at the same
    distance, how far they begin; and their ids.
    """

    n_fields: ClassVar[range] = TWO_FIELDS
    wins_for: ClassVar[str] = "a key and a bound, all upper or all lower ones"
    needs: ClassVar[str] = "a selective field with one value in every box"
    needs_points: ClassVar[bool] = True

    key_blocks: NDArray[np.int32]
    blocks: NDArray[np.int32]
    origin: int  # the first or the last cell of axis 1
    least: int  # no box begins nearer to it
    has_nears: bool  # some begin farther away
    most: int  # boxes, and spare ones, of a key

    @classmethod
    def build(
        cls, firsts: NDArray[np.int32], lasts: NDArray[np.int32], ids: NDArray[np.int32], n_cells: Sequence[int]
    ) -> Self:
        """Index boxes on two axes that have one cell each on axis 0."""
        firsts, lasts, ids = as_boxes(firsts, lasts, ids, n_cells)
        if (firsts[0] != lasts[0]).any():
            raise ValueError("keyed runs need boxes of one cell on axis 0; these have more")
        last_cell = n_cells[1] - 1
        nears, fars, origin = firsts[1], lasts[1], 0
        if (last_cell - firsts[1]).sum(dtype=np.int64) < lasts[1].sum(dtype=np.int64):
            nears, fars, origin = last_cell - lasts[1], last_cell - firsts[1], last_cell
        least = int(nears.min(initial=last_cell))
        has_nears = bool((nears != least).any())
        order = np.argsort(firsts[0].astype(np.int64) << 32 | (last_cell - fars), kind="stable")
        lanes = [fars[order], nears[order], ids[order]] if has_nears else [fars[order], ids[order]]
        key_blocks, blocks = _arrange(firsts[0][order], lanes, n_cells[0])
        return cls(key_blocks, blocks, origin, least, has_nears, _count_most(key_blocks))

    @classmethod
    def estimate(cls, facts: BoxFacts) -> list[Estimate]:
        (axes,) = facts.pairs()
        if not facts.is_point[axes[0]]:
            return []
        chosen = sample_boxes(facts.n, SAMPLE)
        firsts, lasts = facts.firsts[axes[1], chosen], facts.lasts[axes[1], chosen]
        n_cells, by_key = facts.n_cells[axes[1]], facts.n * facts.shares[axes[0]]
        ends = min(((lasts, firsts), (n_cells - 1 - firsts, n_cells - 1 - lasts)), key=lambda each: each[0].sum())
        is_one_sided = bool((ends[1] == ends[1].min(initial=n_cells)).all())
        read, met = float(np.mean(by_key * (ends[0] + 1)) / n_cells), facts.matches
        blocks = 1 + read / LANES
        cost = 12 + (0.5 * met + 2 * blocks if is_one_sided else 18 * blocks) + 2 * miss_cost(facts.n, 12)
        return [Estimate(axes, cost, f"a row reads about {read:,.1f} of {facts.n:,} boxes")]

    def match(self, cells: NDArray[np.int32]) -> Matches:
        cells = as_cells(cells)

        def fill(done: int, starts: NDArray[np.int64], positions: NDArray[np.int32]) -> int:
            return _fill(
                cells, done, starts, positions, self.key_blocks, self.blocks, self.origin, self.least, self.has_nears
            )

        return collect(cells.shape[1], self.most, fill)

    def validate(self, n_cells: Sequence[int], ids: range) -> None:
        check_fields(self)
        check(len(n_cells) == 2, "keyed runs are on two axes")
        last_cell = n_cells[1] - 1
        check(self.origin in (0, last_cell) and 0 <= self.least <= last_cell, "runs begin outside their axis")
        check_shape(self.key_blocks, (n_cells[0] + 1,), "the blocks of keys")
        width = LANES * (2 + self.has_nears)
        check_shape(self.blocks, (len(self.blocks) // width * width,), "the blocks")
        check_starts(self.key_blocks, len(self.blocks) // width, "the blocks of keys")
        check(self.most == _count_most(self.key_blocks), "the longest run has another length")
        lanes = self.blocks.reshape(-1, 2 + self.has_nears, LANES)
        fars, numbers = lanes[:, 0], lanes[:, -1]
        check_within(fars, NOWHERE, last_cell, "the ends of runs")
        check_within(numbers[fars != NOWHERE], ids.start, ids.stop - 1, "the ids of runs")
        check((fars[:, 1:] <= fars[:, :-1]).all(), "a block is not sorted")
        follows = np.ones(max(0, len(fars) - 1), np.bool_)
        follows[self.key_blocks[(self.key_blocks > 0) & (self.key_blocks < len(fars))] - 1] = False
        check((fars[1:, 0] <= fars[:-1, -1])[follows].all(), "a run is not sorted")

    @property
    def nbytes(self) -> int:
        return count_bytes(self)


def _arrange(
    keys: NDArray[np.int32], lanes: Sequence[NDArray[np.int32]], n_keys: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Where the blocks of each key begin, and the blocks. The boxes are sorted by key, and then as in their runs."""
    n_boxes = np.bincount(keys, minlength=n_keys)
    key_blocks = np.concatenate([[0], np.cumsum((n_boxes + LANES - 1) // LANES)])
    blocks = empty_int32(int(key_blocks[-1]) * len(lanes) * LANES)  # in lines of the cache
    blocks[:] = NOWHERE
    own = np.arange(len(keys)) - (np.cumsum(n_boxes) - n_boxes)[keys]  # the place of a box in its run
    places = key_blocks[keys] + own // LANES, own % LANES
    for number, values in enumerate(lanes):
        blocks.reshape(-1, len(lanes), LANES)[:, number][places] = values
    return key_blocks.astype(np.int32), blocks


def _count_most(key_blocks: NDArray[np.int32]) -> int:
    return LANES * int(np.diff(key_blocks).max(initial=0))


@kernel
def _fill(
    cells: NDArray[np.int32],
    done: int,
    starts: NDArray[np.int64],
    positions: NDArray[np.int32],
    key_blocks: NDArray[np.int32],
    blocks: NDArray[np.int32],
    origin: int,
    least: int,
    has_nears: bool,
) -> int:
    """Write the matches of rows from `done` on while there is room; return how many rows are done."""
    n_rows, width = len(cells[0]), 24 if has_nears else 16
    out = starts[done]
    for row in range(done, n_rows):
        if row + FAR < n_rows:
            prefetch(key_blocks, cells[0, row + FAR])
            prefetch(blocks, width * key_blocks[cells[0, row + NEAR]])
        first, end = key_blocks[cells[0, row]], key_blocks[cells[0, row] + 1]
        if len(positions) - out < LANES * (end - first):
            return row
        distance = abs(origin - cells[1, row])
        if distance >= least:
            for block in range(width * first, width * end, width):
                n_reaching = count_reaching(blocks, block, distance)
                if has_nears:
                    for lane in range(LANES):  # without a branch, and unrolled
                        positions[out] = blocks[block + 16 + lane]
                        out += (lane < n_reaching) & (blocks[block + 8 + lane] <= distance)
                else:
                    copy_eight(positions, out, blocks, block + 8)
                    out += n_reaching
                if n_reaching < LANES:
                    break
        starts[row + 1] = out
    return n_rows
