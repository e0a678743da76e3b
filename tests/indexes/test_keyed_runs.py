"""Keyed runs: one-sided ranges from either end of their axis, in runs longer and shorter than a block."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

from vedette.indexes.keyed_runs import LANES, NOWHERE, KeyedRuns
from vedette.native.damage import DamageError

N_CELLS = [8, 42]  # the last one is null


def found(matches):
    return [
        sorted(matches.positions[low:high].tolist())
        for low, high in zip(matches.starts[:-1], matches.starts[1:], strict=True)
    ]


def every_cell():
    return np.array(np.meshgrid(np.arange(N_CELLS[0]), np.arange(N_CELLS[1]))).reshape(2, -1).astype(np.int32)


def one_sided(n, side, seed=0):
    """Boxes below or above a bound; `above` leaves out null, `with null` does not."""
    random = np.random.default_rng(seed)
    keys, bounds = random.integers(0, 5, n), random.integers(0, N_CELLS[1] - 1, n)
    ends = {"below": (0, bounds), "above": (bounds, N_CELLS[1] - 2), "with null": (bounds, N_CELLS[1] - 1)}[side]
    firsts, lasts = (np.stack(np.broadcast_arrays(keys, each)).astype(np.int32) for each in ends)
    return firsts, lasts, np.arange(n, dtype=np.int32)


@pytest.mark.parametrize("side", ["below", "above", "with null"])
@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 40, 200])
def test_every_cell_meets_the_boxes_on_its_side_of_their_bounds(side, n):
    firsts, lasts, ids = one_sided(n, side)
    index = KeyedRuns.build(firsts, lasts, ids, N_CELLS)

    assert found(index.match(every_cell())) == oracles.match_boxes(firsts, lasts, ids, every_cell())
    assert not index.has_nears
    index.validate(N_CELLS, range(n))


def test_ranges_with_two_ends_among_one_sided_ones_are_found():
    firsts, lasts, ids = one_sided(60, "below")
    firsts[1, ::3] = lasts[1, ::3] // 2
    index = KeyedRuns.build(firsts, lasts, ids, N_CELLS)

    assert index.has_nears
    assert found(index.match(every_cell())) == oracles.match_boxes(firsts, lasts, ids, every_cell())


def test_a_range_of_keys_is_refused():
    firsts, lasts = np.array([[1], [0]], np.int32), np.array([[2], [3]], np.int32)

    with pytest.raises(ValueError, match="one cell on axis 0; these have more"):
        KeyedRuns.build(firsts, lasts, np.zeros(1, np.int32), [4, 4])


@pytest.mark.parametrize("side", ["below", "above"])
def test_unsorted_runs_are_not_valid(side):
    index = KeyedRuns.build(*one_sided(200, side), N_CELLS)
    fars = index.blocks.reshape(-1, 2, LANES)[:, 0]
    fars[0, 0], fars[0, 1] = NOWHERE, fars[0, 0]
    with pytest.raises(DamageError, match="a block is not sorted"):
        index.validate(N_CELLS, range(200))

    index = KeyedRuns.build(*one_sided(200, side), N_CELLS)
    index.blocks.reshape(-1, 2, LANES)[0, 0] = 0
    with pytest.raises(DamageError, match="a run is not sorted"):
        index.validate(N_CELLS, range(200))
