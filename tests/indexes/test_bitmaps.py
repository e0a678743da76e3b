"""Bitmaps read out dense and sparse words, with ids in a row and not."""

from __future__ import annotations

import numpy as np
import pytest

from vedette.indexes.bitmaps import Bitmaps


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("first_id", [0, 7, None])
def test_every_density_of_matches_is_read_out(share, first_id):
    random = np.random.default_rng(1)
    n = 300
    firsts = random.integers(0, 100, (2, n)).astype(np.int32)
    lasts = np.minimum(firsts + int(100 * share), 101).astype(np.int32)
    firsts[:, random.random(n) < share / 2] = 0
    ids = (
        random.permutation(n).astype(np.int32)
        if first_id is None
        else np.arange(first_id, first_id + n, dtype=np.int32)
    )
    cells = random.integers(0, 102, (2, 60)).astype(np.int32)
    matches = Bitmaps.build(firsts, lasts, ids, [102, 102]).match(cells)

    for row in range(60):
        holds = ((firsts <= cells[:, row, None]) & (cells[:, row, None] <= lasts)).all(axis=0)
        positions = matches.positions[matches.starts[row] : matches.starts[row + 1]]
        assert sorted(positions.tolist()) == sorted(ids[holds].tolist())
