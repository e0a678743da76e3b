"""What every index promises, each crossed with each."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import run_alone
from numba import config

from tests.profiles import examples
from vedette.indexes.names import INDEXES, PLANNED_INDEXES, SAVED_INDEXES
from vedette.native.budget import Pieces, check_bytes
from vedette.native.damage import DamageError

N_AXES = {True: (1, 4), False: (1, 2, 4, 12)}  # on which indexes for any number of fields are tested, if planned


def contract_of(name):
    """An index crossed with numbers of axes, and with whether boxes have one cell on the first axis."""
    index_class = INDEXES[name]
    is_planned = name in PLANNED_INDEXES
    numbers = [n for n in N_AXES[is_planned] if n in index_class.n_fields] or [index_class.n_fields.start]
    needs_points = is_planned and index_class.needs_points
    return [(index_class, n, needs_points) for n in numbers] + [(index_class, 3, True)] * (name == "Verified")


NAMES = {INDEXES[name]: name for name in INDEXES}
# An index joins by its line in the table of names.
CONTRACT = [each for name in INDEXES for each in contract_of(name)]
every_index = pytest.mark.parametrize(
    ("index_class", "n_axes", "keyed"), CONTRACT, ids=[f"{c.__name__}-{k}{'-keyed' * p}" for c, k, p in CONTRACT]
)
# Those to which boxes can be added, and from which they can be taken, as the papers have it. The others are built once:
# a query set creates a part for new queries.
CHANGING = [each for each in CONTRACT if hasattr(each[0], "insert")]
every_changing_index = pytest.mark.parametrize(
    ("index_class", "n_axes", "keyed"), CHANGING, ids=[f"{c.__name__}-{k}" for c, k, _ in CHANGING]
)
SLOW = bool(config.DISABLE_JIT)


def int32(values, shape):
    return np.array(values, np.int32).reshape(shape)


def found(matches):
    return [
        sorted(matches.positions[low:high].tolist())
        for low, high in zip(matches.starts[:-1], matches.starts[1:], strict=True)
    ]


@st.composite
def problems(draw, n_axes, keyed, max_boxes=30, max_rows=30):
    """Boxes and rows over few cells, so that shared ends, exact hits and the null cell (the last) happen often."""
    n_cells = [2 * draw(st.sampled_from([0, 1, 2, 3, 8, 40])) + 2 for _ in range(n_axes)]
    n_boxes = draw(st.integers(0, max_boxes))
    n_rows = draw(st.integers(0, max_rows))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    firsts, lasts, cells = [], [], []
    for axis, n in enumerate(n_cells):
        ends = random.integers(0, n, (2, n_boxes))
        if draw(st.booleans()):
            ends.sort(axis=0)  # else some ranges run backwards and never match
        whole = random.random(n_boxes) < draw(st.sampled_from([0, 0.3]))
        firsts.append(np.where(whole, 0, ends[0]))
        lasts.append(np.where(whole, n - 1, ends[1]))
        if axis == 0 and keyed:
            lasts[0] = firsts[0] = ends[0]
        cells.append(random.integers(0, n, n_rows))
    ids = random.integers(0, draw(st.sampled_from([1, 5, 1000])), n_boxes)
    boxes = (n_axes, n_boxes)
    return int32(firsts, boxes), int32(lasts, boxes), int32(ids, n_boxes), n_cells, int32(cells, (n_axes, n_rows))


@every_index
@given(data=st.data())
@examples(1.5)
def test_it_matches_what_brute_force_matches(index_class, n_axes, keyed, data):
    firsts, lasts, ids, n_cells, cells = data.draw(problems(n_axes, keyed))
    index = index_class.build(firsts, lasts, ids, n_cells)

    assert found(index.match(cells)) == oracles.match_boxes(firsts, lasts, ids, cells)


def make_problem(n_boxes, n_rows, n_axes, keyed, mean_share, seed=1):
    """Random boxes whose ends are all the cuts there are, with some very wide ones."""
    random = np.random.default_rng(seed)
    n_cells, firsts, lasts = [], [], []
    for axis in range(n_axes):
        if axis == 0 and keyed:
            keys = random.integers(0, n_boxes // 20, n_boxes)
            firsts.append(2 * keys + 1)
            lasts.append(2 * keys + 1)
            n_cells.append(2 * (n_boxes // 20) + 2)
            continue
        lows = random.random(n_boxes)
        widths = random.exponential(mean_share, n_boxes)
        widths[:: max(1, n_boxes // 3)] = 1
        cuts = np.unique(np.concatenate([lows, lows + widths]))
        firsts.append(2 * np.searchsorted(cuts, lows) + 1)
        lasts.append(2 * np.searchsorted(cuts, lows + widths) + 1)
        n_cells.append(2 * len(cuts) + 2)
    ids = random.permutation(n_boxes)
    cells = [random.integers(0, n, n_rows) for n in n_cells]
    return (
        int32(firsts, (n_axes, n_boxes)),
        int32(lasts, (n_axes, n_boxes)),
        int32(ids, n_boxes),
        n_cells,
        int32(cells, (n_axes, n_rows)),
    )


@every_index
def test_it_answers_a_large_batch_over_many_boxes(index_class, n_axes, keyed):
    n_boxes, n_rows = (300, 300) if SLOW else (50_000, 20_000)
    firsts, lasts, ids, n_cells, cells = make_problem(n_boxes, n_rows, n_axes, keyed, 0.001 if n_axes == 1 else 0.02)
    matches = index_class.build(firsts, lasts, ids, n_cells).match(cells)

    assert len(matches) == n_rows
    assert matches.starts[0] == 0
    assert matches.starts[-1] == len(matches.positions)
    for row in range(0, n_rows, 97):
        holds = ((firsts <= cells[:, row, None]) & (cells[:, row, None] <= lasts)).all(axis=0)
        positions = matches.positions[matches.starts[row] : matches.starts[row + 1]]
        assert sorted(positions) == sorted(ids[holds])
    # The number of all pairs, box by box.
    by_cell = np.argsort(cells[-1], kind="stable")
    low = np.searchsorted(cells[-1][by_cell], firsts[-1])
    high = np.searchsorted(cells[-1][by_cell], lasts[-1], side="right")
    chosen = range(0, n_boxes, 53)
    expected = sum(
        int(
            ((firsts[:, box, None] <= cells[:, by_cell[low[box] : high[box]]])
            & (cells[:, by_cell[low[box] : high[box]]] <= lasts[:, box, None])).all(axis=0).sum()
        )
        for box in chosen
    )  # fmt: skip
    times = np.bincount(matches.positions, minlength=n_boxes)
    assert times[ids[::53]].sum() == expected


@every_index
def test_a_row_alone_matches_what_it_matches_in_a_batch(index_class, n_axes, keyed):
    firsts, lasts, ids, n_cells, cells = make_problem(200, 400, n_axes, keyed, 0.1)
    index = index_class.build(firsts, lasts, ids, n_cells)
    together = found(index.match(cells))

    assert [found(index.match(cells[:, row : row + 1]))[0] for row in range(400)] == together


@every_index
def test_no_boxes_match_nothing(index_class, n_axes, keyed):
    none = np.empty((n_axes, 0), np.int32)
    index = index_class.build(none, none, np.empty(0, np.int32), [2] * n_axes)

    assert found(index.match(np.zeros((n_axes, 3), np.int32))) == [[], [], []]


@every_index
def test_no_rows_have_no_matches(index_class, n_axes, keyed):
    firsts, lasts, ids, n_cells, _ = make_problem(50, 1, n_axes, keyed, 0.1)
    matches = index_class.build(firsts, lasts, ids, n_cells).match(np.empty((n_axes, 0), np.int32))

    assert matches.starts.tolist() == [0]
    assert len(matches.positions) == 0


@every_index
def test_it_answers_the_same_after_pickling(index_class, n_axes, keyed):
    firsts, lasts, ids, n_cells, cells = make_problem(100, 50, n_axes, keyed, 0.1)
    index = index_class.build(firsts, lasts, ids, n_cells)

    assert found(pickle.loads(pickle.dumps(index)).match(cells)) == found(index.match(cells))


@every_index
def test_it_takes_read_only_and_strided_cells(index_class, n_axes, keyed):
    firsts, lasts, ids, n_cells, cells = make_problem(100, 50, n_axes, keyed, 0.1)
    for array in (firsts, lasts, ids):
        array.flags.writeable = False
    index = index_class.build(firsts, lasts, ids, n_cells)
    expected = found(index.match(cells))
    strided = np.asfortranarray(cells)
    strided.flags.writeable = False

    assert found(index.match(strided)) == expected


@every_index
def test_it_answers_with_int64_starts_and_int32_positions(index_class, n_axes, keyed):
    firsts, lasts, ids, n_cells, cells = make_problem(100, 400, n_axes, keyed, 0.1)
    index = index_class.build(firsts, lasts, ids, n_cells)
    for n_rows in (1, 400):
        matches = index.match(cells[:, :n_rows])

        assert (matches.starts.dtype, matches.positions.dtype) == (np.int64, np.int32)


@every_index
def test_its_memory_is_reported_and_bounded(index_class, n_axes, keyed):
    n_boxes = 1_000 if SLOW else 20_000
    firsts, lasts, ids, n_cells, _ = make_problem(n_boxes, 1, n_axes, keyed, 0.01)
    index = index_class.build(firsts, lasts, ids, n_cells)

    # Lists by cell or place are meant for narrow boxes; these are not.
    is_direct = index_class.__name__ in ("Lists", "Dlist")
    most = 4 * (4 * n_cells[0] + int((lasts - firsts + 1).sum())) + 100 if is_direct else 400 * n_boxes * n_axes
    assert 8 * n_boxes <= index.nbytes <= most
    n_pickled = len(pickle.dumps(index))
    assert 0.9 * n_pickled <= index.nbytes <= 1.1 * n_pickled


@every_index
def test_boxes_on_an_axis_of_null_alone(index_class, n_axes, keyed):
    # No cuts: cell 0 has every value, cell 1 is null.
    firsts, lasts = int32([[0, 1, 1]] * n_axes, (n_axes, 3)), int32([[0, 1, 0]] * n_axes, (n_axes, 3))
    index = index_class.build(firsts, lasts, int32([7, 8, 9], 3), [2] * n_axes)

    assert found(index.match(int32([[0, 1, 0]] * n_axes, (n_axes, 3)))) == [[7], [8], [7]]


@every_changing_index
@given(data=st.data())
def test_boxes_are_inserted_and_removed(index_class, n_axes, keyed, data):
    firsts, lasts, ids, n_cells, cells = data.draw(problems(n_axes, keyed))
    n_boxes = len(ids)
    n_built = data.draw(st.integers(0, n_boxes))
    index = index_class.build(firsts[:, :n_built], lasts[:, :n_built], ids[:n_built], n_cells)
    here = list(range(n_built))
    coming = list(range(n_built, n_boxes))
    for _ in range(data.draw(st.integers(1, 4))):
        if data.draw(st.booleans()):
            chosen = [coming.pop() for _ in range(min(len(coming), data.draw(st.integers(0, 12))))]
            index.insert(firsts[:, chosen], lasts[:, chosen], ids[chosen])
            here += chosen
        else:
            removed = data.draw(st.lists(st.sampled_from(sorted(set(ids.tolist())) or [0]), max_size=12))
            index.remove(np.array(removed, np.int32))
            coming += [box for box in here if ids[box] in removed]
            here = [box for box in here if ids[box] not in removed]
        index = pickle.loads(pickle.dumps(index))

        expected = oracles.match_boxes(firsts[:, here], lasts[:, here], ids[here], cells)
        assert found(index.match(cells)) == expected


@every_changing_index
def test_an_index_after_many_changes_equals_a_newly_built_one(index_class, n_axes, keyed):
    n_boxes = 200 if SLOW else 4_000
    firsts, lasts, ids, n_cells, cells = make_problem(n_boxes, 300, n_axes, keyed, 0.05)
    built = index_class.build(firsts, lasts, ids, n_cells)
    index = index_class.build(firsts[:, ::4], lasts[:, ::4], ids[::4], n_cells)
    random = np.random.default_rng(6)
    rest = np.delete(np.arange(n_boxes), np.s_[::4])
    for some in np.array_split(random.permutation(rest), 10):
        index.insert(firsts[:, some], lasts[:, some], ids[some])

    assert found(index.match(cells)) == found(built.match(cells))
    assert index.nbytes <= 4 * built.nbytes + 20_000
    order = random.permutation(n_boxes)
    removed, kept = order[: n_boxes * 9 // 10], order[n_boxes * 9 // 10 :]
    for some in np.array_split(removed, 10):
        index.remove(ids[some])
    rebuilt = index_class.build(firsts[:, kept], lasts[:, kept], ids[kept], n_cells)
    assert found(index.match(cells)) == found(rebuilt.match(cells))
    index.remove(ids)
    assert found(index.match(cells)) == [[]] * 300


def one_outside(n_axes, keyed, axis, outside, n_boxes=2):
    """Boxes of one cell within ten; the last box reaches the given cell on one axis."""
    firsts, lasts = np.full((n_axes, n_boxes), 2, np.int32), np.full((n_axes, n_boxes), 2, np.int32)
    firsts[axis, -1], lasts[axis, -1] = sorted((2, outside))
    if keyed and axis == 0:
        firsts[0, -1] = lasts[0, -1] = outside
    return firsts, lasts, np.arange(n_boxes, dtype=np.int32)


@every_index
def test_a_box_beyond_its_axes_is_not_built_of(index_class, n_axes, keyed):
    for axis in {0, n_axes - 1}:
        for outside in (-1, 10):
            boxes = one_outside(n_axes, keyed, axis, outside)
            reported = f"axis {axis} has the cells 0 to 9; got one from {boxes[0][axis, 1]} to {boxes[1][axis, 1]}"
            with pytest.raises(ValueError, match=reported):
                index_class.build(*boxes, [10] * n_axes)


@every_index
def test_an_empty_box_may_be_outside_its_axes(index_class, n_axes, keyed):
    firsts, lasts, ids = one_outside(n_axes, keyed, n_axes - 1, 10)
    firsts[-1, 1] = 12
    index = index_class.build(firsts, lasts, ids, [10] * n_axes)

    assert found(index.match(np.full((n_axes, 1), 2, np.int32))) == [[0]]


NOTHING_BY_CELL = [
    INDEXES[name] for name in ("R-tree", "packed R-tree", "IS-list")
]  # these know no last cell, and a box beyond it is as good as another


@every_changing_index
@pytest.mark.parametrize("n_boxes", [1, 30])  # a few are inserted, many make some indexes rebuild
def test_a_box_outside_its_axes_is_refused(index_class, n_axes, keyed, n_boxes):
    firsts, lasts, ids = one_outside(n_axes, keyed, 0, 2, 20)
    index = index_class.build(firsts, lasts, ids, [10] * n_axes)
    cells = np.full((n_axes, 1), 2, np.int32)
    for axis in {0, n_axes - 1}:
        for outside in (-1, 10):
            if outside > 0 and index_class in NOTHING_BY_CELL:
                continue
            with pytest.raises(ValueError, match=f"boxes must lie within their axes, and axis {axis} has"):
                index.insert(*one_outside(n_axes, keyed, axis, outside, n_boxes))

            assert found(index.match(cells)) == [list(range(20))]
    index.remove(ids[:15])
    index.insert(firsts[:, :1], lasts[:, :1], ids[:1])
    assert found(index.match(cells)) == [[0, 15, 16, 17, 18, 19]]


@pytest.mark.parametrize("index_class", NOTHING_BY_CELL)
def test_an_index_with_nothing_by_cell_takes_boxes_above(index_class):
    firsts, lasts, ids = one_outside(1, False, 0, 2, 20)
    index = index_class.build(firsts, lasts, ids, [10])
    index.insert(int32([2, 50], (1, 2)), int32([10, 60], (1, 2)), int32([20, 21], 2))

    assert found(index.match(int32([2, 10, 60], (1, 3)))) == [list(range(21)), [20], [21]]


@every_index
@given(data=st.data())
@examples(0.6)
def test_it_matches_the_same_under_any_bound(index_class, n_axes, keyed, data):
    firsts, lasts, ids, n_cells, cells = data.draw(problems(n_axes, keyed))
    index = index_class.build(firsts, lasts, ids, n_cells)
    pieces = Pieces(data.draw(st.integers(1, 30)), *data.draw(st.tuples(st.integers(1, 200), st.integers(1, 400))))

    def find(start, end):
        matches = index.match(cells[:, start:end])
        check_bytes(matches.nbytes)
        return matches

    rows = [row for _, _, matches in pieces.of(find, cells.shape[1]) for row in found(matches)]
    assert rows == oracles.match_boxes(firsts, lasts, ids, cells)


@pytest.mark.skipif(SLOW, reason="without compiled kernels, so many boxes take too long")
def test_no_index_allocates_an_answer_beyond_the_bound():
    classes = sorted({(NAMES[each], n_axes, keyed) for each, n_axes, keyed in CONTRACT if n_axes < 12})
    reported = run_alone(
        f"""
        import numpy as np
        from vedette.indexes.names import INDEXES
        from vedette.native.budget import OverBudgetError, bounded
        for name, n_axes, keyed in {classes!r}:
            index_class = INDEXES[name]
            n_boxes = 2_000 if name == "Dlist" else 20_000
            firsts = np.ones((n_axes, n_boxes), np.int32)
            index = index_class.build(firsts, firsts, np.arange(n_boxes, dtype=np.int32), [4] * n_axes)
            for n_rows in (200, 100_000):
                cells = np.repeat(np.arange(2, dtype=np.int32), n_rows // 2)[None].repeat(n_axes, axis=0)
                index.match(cells[:, :300:100])
                with Peak() as peak:
                    try:
                        with bounded(8 << 20):
                            index.match(cells)
                        assert n_rows * n_boxes // 2 * 4 <= 8 << 20, name
                    except OverBudgetError as error:
                        assert error.n_bytes > 8 << 20
                most = 600 if name in ("MLGF", "Dual") else 100  # a batch of these may take MAX_BYTES for bits
                assert peak.megabytes < most, (name, n_axes, n_rows, peak.megabytes)
        print("done")
        """
    )

    assert reported == "done\n"


# Those that a file keeps as they are; the others are kept as their boxes (see `KeptAsBoxes`).
VALIDATED = [each for each in CONTRACT if hasattr(each[0], "validate")]
every_validated_index = pytest.mark.parametrize(
    ("index_class", "n_axes", "keyed"), VALIDATED, ids=[f"{c.__name__}-{k}{'-keyed' * p}" for c, k, p in VALIDATED]
)


def test_every_index_that_the_planner_takes_can_be_validated():
    taken = {INDEXES[name] for name in SAVED_INDEXES}

    assert taken <= {index_class for index_class, _, _ in VALIDATED}


@every_validated_index
@given(data=st.data())
@examples(0.6)
def test_what_was_built_is_valid(index_class, n_axes, keyed, data):
    firsts, lasts, ids, n_cells, _ = data.draw(problems(n_axes, keyed))

    index = index_class.build(firsts, lasts, ids, n_cells)
    index.validate(n_cells, range(1000))
    if hasattr(index, "has_boxes"):
        holds = (firsts <= lasts).all(axis=0)
        assert index.has_boxes(firsts[:, holds], lasts[:, holds], ids[holds])
        others = ids[holds] + 1
        assert not len(others) or not index.has_boxes(firsts[:, holds], lasts[:, holds], others)


@every_validated_index
def test_arrays_of_another_length_or_type_are_not_valid(index_class, n_axes, keyed):
    random = np.random.default_rng(n_axes)
    n_cells = [42] * n_axes
    firsts = random.integers(0, 30, (n_axes, 200)).astype(np.int32)
    lasts = firsts if keyed else (firsts + random.integers(0, 9, firsts.shape)).astype(np.int32)
    index = index_class.build(firsts, lasts, np.arange(5, 205, dtype=np.int32), n_cells)
    index.validate(n_cells, range(5, 205))
    for wrong in (n_cells[1:], [*n_cells, 42], [cells - 8 for cells in n_cells]):
        with pytest.raises(DamageError):
            index.validate(wrong, range(5, 205))
    for ids in (range(6, 205), range(5, 204)):
        with pytest.raises(DamageError):
            index.validate(n_cells, ids)
    for name, array in vars(index).items():
        if isinstance(array, np.ndarray) and array.size:
            for harmed in (array[:-1], array.astype(np.float32), array[None], np.concatenate([array, array[-1:]])):
                with pytest.raises(DamageError):
                    dataclasses.replace(index, **{name: harmed}).validate(n_cells, range(5, 205))
