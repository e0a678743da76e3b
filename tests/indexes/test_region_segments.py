from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.indexes.region_segments import RegionSegments

N_CELLS = 8
cell = st.integers(0, N_CELLS - 1)


def arrays(drawn):
    return np.array(drawn, np.int32)


def ids_of(matches, i):
    return sorted(matches.positions[matches.starts[i] : matches.starts[i + 1]].tolist())


@given(
    st.integers(1, 3).flatmap(
        lambda k: st.tuples(
            st.lists(st.lists(st.tuples(cell, cell), min_size=k, max_size=k), max_size=6),
            st.lists(st.lists(st.tuples(cell, cell), min_size=k, max_size=k), max_size=6),
            st.just(k),
        )
    )
)
def test_a_move_enters_and_leaves_what_the_difference_of_matches_says(drawn):
    boxes, moves, k = drawn
    firsts, lasts = (
        arrays([[box[axis][side] for box in boxes] for axis in range(k)]).reshape(k, -1) for side in (0, 1)
    )
    before, after = (
        arrays([[move[axis][side] for move in moves] for axis in range(k)]).reshape(k, -1) for side in (0, 1)
    )
    built = RegionSegments.build(firsts, lasts, np.arange(len(boxes), dtype=np.int32) + 10, [N_CELLS] * k)
    segments = pickle.loads(pickle.dumps(built))

    def held(cells):
        return {
            10 + number
            for number, box in enumerate(boxes)
            if all(first <= at <= last for (first, last), at in zip(box, cells, strict=True))
        }

    entered, left = segments.changes(before, after)

    for i, move in enumerate(moves):
        old, new = held([each[0] for each in move]), held([each[1] for each in move])
        assert ids_of(entered, i) == sorted(new - old)
        assert ids_of(left, i) == sorted(old - new)
    n_read = segments.count_read(before, after)
    assert all(n_read[i] >= len(ids_of(entered, i) + ids_of(left, i)) for i in range(len(moves)))
