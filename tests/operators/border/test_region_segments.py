from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.operators.border.region_line import RSList
from vedette.operators.border.region_segments import RSLists
from vedette.operators.border.runs import ENTER, EXIT

N_CELLS = 8
cell = st.integers(0, N_CELLS - 1)
odd, even = (cell.filter(lambda at, kind=kind: at % 2 == kind) for kind in (1, 0))


def arrays(drawn):
    return np.array(drawn, np.int32)


@given(
    st.tuples(st.integers(1, 3), st.sampled_from([cell, odd, even]), st.sampled_from([cell, odd, even])).flatmap(
        lambda drawn: st.tuples(
            st.lists(st.lists(st.tuples(drawn[1], drawn[2]), min_size=drawn[0], max_size=drawn[0]), max_size=12),
            st.lists(st.lists(st.tuples(cell, cell), min_size=drawn[0], max_size=drawn[0]), max_size=6),
            st.just(drawn[0]),
        )
    )
)
def test_a_move_enters_and_leaves_the_difference_of_matches(drawn):
    boxes, moves, k = drawn
    firsts, lasts = (
        arrays([[box[axis][side] for box in boxes] for axis in range(k)]).reshape(k, -1) for side in (0, 1)
    )
    before, after = (
        arrays([[move[axis][side] for move in moves] for axis in range(k)]).reshape(k, -1) for side in (0, 1)
    )
    made = RSList if k == 1 else RSLists
    built = made.build(firsts, lasts, np.arange(len(boxes), dtype=np.int32) + 10, [N_CELLS] * k)
    segments = pickle.loads(pickle.dumps(built))

    def stored(cells):
        return {
            10 + number
            for number, box in enumerate(boxes)
            if all(first <= at <= last for (first, last), at in zip(box, cells, strict=True))
        }

    cells = np.ascontiguousarray(np.concatenate([before, after], axis=1))
    olds = np.arange(len(moves))
    runs, rest = segments.changes(cells, olds, olds + len(moves))
    numbers, _, kinds = runs.columns(olds.astype(np.int32), olds)
    changed = list(zip(numbers.tolist(), runs.queries.tolist(), kinds.tolist(), strict=True))
    null = N_CELLS - 1
    lost = [i for i, move in enumerate(moves) if k == 1 and null in move[0] and move[0][0] != move[0][1]]
    assert rest.tolist() == lost

    for i, move in enumerate(moves):
        if i in lost:
            continue
        old, new = stored([each[0] for each in move]), stored([each[1] for each in move])
        mine = [(box, kind) for at, box, kind in changed if at == i]
        assert sorted(box for box, kind in mine if kind == ENTER) == sorted(new - old)
        assert sorted(box for box, kind in mine if kind == EXIT) == sorted(old - new)
        assert [kind for _, kind in mine] == sorted(kind for _, kind in mine)
    assert [at for at, *_ in changed] == sorted(at for at, *_ in changed)
