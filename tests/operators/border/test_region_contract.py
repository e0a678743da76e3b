"""What the structures of BMQ-Index promise, each crossed with each: RS lists, and DiffRMQ over the other indexes."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config

from tests.profiles import examples
from vedette.indexes.buckets import Buckets
from vedette.indexes.names import INDEXES
from vedette.operators.border.differences import DiffRMQ
from vedette.operators.border.region_line import BLOCK, RSList
from vedette.operators.border.region_segments import RSLists
from vedette.papers.rtrees.rectangle_tree import RTree

SLOW = bool(config.DISABLE_JIT)
over_r_tree = partial(DiffRMQ.build, RTree)
# How each is built, and the number of axes.
CONTRACT = [
    ("RSList", RSList.build, 1),  # one axis is all it knows
    ("RSLists", RSLists.build, 1),
    ("RSLists", RSLists.build, 2),
    ("RSLists", RSLists.build, 3),
    ("DiffRMQ", over_r_tree, 1),
    ("DiffRMQ", over_r_tree, 2),
]
every_structure = pytest.mark.parametrize(
    ("build", "n_axes"), [each[1:] for each in CONTRACT], ids=[f"{name}-{k}" for name, _, k in CONTRACT]
)
every_rs_list = pytest.mark.parametrize(
    ("build", "n_axes"), [each[1:] for each in CONTRACT[:4]], ids=[f"{name}-{k}" for name, _, k in CONTRACT[:4]]
)


def brute_force(boxes, old, new):
    """The ids of the boxes that a move leaves and of those that it enters, in order; None is no row."""

    def holds(box, at):
        return at is not None and all(first <= cell <= last for first, last, cell in zip(*box[:2], at, strict=True))

    left = sorted(box[2] for box in boxes if holds(box, old) and not holds(box, new))
    entered = sorted(box[2] for box in boxes if holds(box, new) and not holds(box, old))
    return left, entered


class Problem:
    """Boxes, and keys that move over few cells, so that shared ends happen often."""

    def __init__(self, firsts, lasts, ids, n_cells, cells, before, after):
        self.firsts, self.lasts, self.ids, self.n_cells = firsts, lasts, ids, n_cells
        self.cells, self.before, self.after = cells, before, after

    def boxes(self, some):
        return self.firsts[:, some], self.lasts[:, some], self.ids[some]

    def build(self, build, some):
        return build(*self.boxes(some), self.n_cells)

    def expected(self, some):
        """By brute force, move by move."""
        firsts, lasts, ids = (each.T.tolist() for each in self.boxes(some))
        boxes = list(zip(firsts, lasts, ids, strict=True))
        rows = [*self.cells.T.tolist(), None]  # the last, which -1 means, is no row
        return [brute_force(boxes, rows[old], rows[new]) for old, new in self.moves]

    @property
    def moves(self):
        return list(zip(self.before.tolist(), self.after.tolist(), strict=True))

    def found(self, structure):
        """The same for a structure. For a move that it skips, which is allowed, the answer of brute force is None."""
        answer = structure.changes(self.cells, self.before, self.after)
        runs, rest = (answer, []) if isinstance(structure, DiffRMQ) else answer
        assert list(rest) == [number for number, move in enumerate(self.moves) if self.is_left_out(structure, *move)]
        found, at = [], 0
        for number, (n_left, n_entered) in enumerate(runs.counts.T.tolist()):
            left, entered = (runs.queries[at : at + n_left], runs.queries[at + n_left : at + n_left + n_entered])
            found.append(None if number in rest else (sorted(left.tolist()), sorted(entered.tolist())))
            at += n_left + n_entered
        assert at == len(runs)
        return found

    def is_left_out(self, structure, old, new):
        """RS lists are for moves from row to row; that on one axis, for such as do not come from or go to null."""
        if isinstance(structure, DiffRMQ):
            return False
        if old < 0 or new < 0:
            return True
        cells = {self.cells[0, old], self.cells[0, new]}
        return isinstance(structure, RSList) and len(cells) == 2 and self.n_cells[0] - 1 in cells

    def check(self, structure, some):
        found = self.found(structure)
        expected = self.expected(some)
        assert len(found) == len(expected)
        assert [each for each in found if each is not None] == [
            each for mine, each in zip(found, expected, strict=True) if mine is not None
        ]


@st.composite
def problems(draw, n_axes, repeats):
    n_cells = [2 * draw(st.sampled_from([0, 1, 3, 8, 30])) + 2 for _ in range(n_axes)]
    n_boxes, n_rows = draw(st.integers(0, 24)), draw(st.integers(1, 16))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = []
    for n in n_cells:
        pair = random.integers(0, n, (2, n_boxes))
        if draw(st.booleans()):
            pair.sort(axis=0)  # else some boxes hold nothing
        # Ends of one kind, open or closed, up to some box, so that a side may begin to list cells of the other kind.
        for side in range(2):
            n_alike = draw(st.integers(0, n_boxes))
            pair[side, :n_alike] = pair[side, :n_alike] & ~1 | draw(st.integers(0, 1))
        ends.append(pair)
    firsts, lasts = (np.array([pair[side] for pair in ends], np.int32).reshape(n_axes, n_boxes) for side in range(2))
    ids = random.permutation(3 * n_boxes)[:n_boxes]
    if repeats:
        ids = random.integers(0, max(1, n_boxes // 2), n_boxes)
    steps = random.integers(-draw(st.sampled_from([1, 4, 60])), 5, (n_axes, n_rows))
    tops = np.array(n_cells)[:, None] - 1
    cells = np.abs(np.cumsum(steps, axis=1)) % (2 * tops + 1)
    cells = np.minimum(cells, 2 * tops - cells).clip(0).astype(np.int32)  # turns round at the rims
    before, after = np.arange(-1, n_rows), np.append(np.arange(n_rows), -1)
    return Problem(firsts, lasts, ids.astype(np.int32), n_cells, cells, before, after)


def make_problem(n_boxes, n_rows, n_axes, seed=3, points=False):
    """Random boxes whose ends are all the cuts there are, some very narrow and some very wide."""
    random = np.random.default_rng(seed)
    firsts, lasts, n_cells = [], [], []
    for axis in range(n_axes):
        lows = random.random(n_boxes)
        widths = 0.0 * lows if points and axis == 0 else random.choice([1e-9, 0.01, 0.1, 2.0], n_boxes)
        cuts = np.unique(np.concatenate([lows, lows + widths]))
        firsts.append(2 * np.searchsorted(cuts, lows) + 1)
        lasts.append(2 * np.searchsorted(cuts, lows + widths) + 1)
        n_cells.append(2 * len(cuts) + 2)
    tops = np.array(n_cells)[:, None] - 2
    steps = random.normal(0, 0.02, (n_axes, n_rows)) * tops
    cells = np.clip(tops // 2 + np.cumsum(steps, axis=1), 0, tops).astype(np.int32)
    before, after = np.arange(n_rows - 1), np.arange(1, n_rows)
    ids = random.permutation(n_boxes).astype(np.int32)
    return Problem(np.array(firsts, np.int32), np.array(lasts, np.int32), ids, n_cells, cells, before, after)


def parts(structure):
    """The used parts of the arrays of RS lists."""
    if isinstance(structure, RSList):
        n = structure.n_entries
        used = {"ids": np.s_[:n], "others": np.s_[:n], "narrowest": np.s_[: -(-n // BLOCK)]}
    else:
        n = len(structure)
        used = {"entries": np.s_[..., :n], "ends": np.s_[:n], "ids": np.s_[:n]}
    arrays = {name: value for name, value in vars(structure).items() if isinstance(value, np.ndarray)}
    return {name: array[used.get(name, ...)].tolist() for name, array in arrays.items()}


@every_structure
@given(data=st.data())
@examples(1.5)
def test_moves_enter_and_leave_the_same_boxes_as_brute_force(build, n_axes, data):
    problem = data.draw(problems(n_axes, repeats=False))

    problem.check(problem.build(build, slice(None)), slice(None))


@every_structure
@given(data=st.data())
@examples(1.5)
def test_boxes_are_inserted_and_removed(build, n_axes, data):
    is_rs_list = build is not over_r_tree
    problem = data.draw(problems(n_axes, repeats=is_rs_list and data.draw(st.booleans())))
    ids = problem.ids
    here = list(range(data.draw(st.integers(0, len(ids)))))
    coming = list(range(len(here), len(ids)))
    structure = problem.build(build, here)
    for _ in range(data.draw(st.integers(1, 5))):
        if data.draw(st.booleans()):
            chosen = [coming.pop(0) for _ in range(min(len(coming), data.draw(st.integers(0, 12))))]
            structure.insert(*problem.boxes(chosen))
            here += chosen
        else:
            removed = set(data.draw(st.lists(st.sampled_from([*ids.tolist(), -7]), max_size=12)))
            structure.remove(np.array(sorted(removed), np.int32))
            coming += [box for box in here if ids[box] in removed]
            here = [box for box in here if ids[box] not in removed]
        structure = pickle.loads(pickle.dumps(structure))

        problem.check(structure, here)
        if is_rs_list:
            assert parts(structure) == parts(problem.build(build, here))


@every_structure
def test_a_structure_after_many_changes_equals_a_newly_built_one(build, n_axes):
    n_boxes = 250 if SLOW else 1_500
    problem = make_problem(n_boxes, 60, n_axes)
    random = np.random.default_rng(6)
    here = np.arange(0, n_boxes, 4)
    structure = problem.build(build, here)
    for some in np.array_split(random.permutation(np.setdiff1d(np.arange(n_boxes), here)), 10):
        structure.insert(*problem.boxes(some))
        here = np.append(here, some)
    built = problem.build(build, here)

    problem.check(structure, here)
    assert structure.nbytes <= 4 * built.nbytes + 20_000
    if build is not over_r_tree:
        assert parts(structure) == parts(built)
        assert structure.nbytes <= 1.5 * built.nbytes + 1_000
    for some in np.array_split(random.permutation(n_boxes)[: n_boxes * 9 // 10], 10):
        structure.remove(problem.ids[some])
        here = here[~np.isin(here, some)]
    problem.check(structure, here)
    if build is not over_r_tree:
        rebuilt = problem.build(build, here)
        assert parts(structure) == parts(rebuilt)
        assert structure.nbytes <= 4 * rebuilt.nbytes + 4_000
    structure.remove(problem.ids)
    assert problem.found(structure) == [([], [])] * len(problem.moves)


@every_rs_list
def test_new_entries_use_the_room_of_removed_ones(build, n_axes):
    problem = make_problem(300, 20, n_axes)
    lists = problem.build(build, slice(None))
    ids = lists.ids
    some = np.arange(0, 300, 10)
    lists.remove(problem.ids[some])
    lists.insert(*problem.boxes(some))

    assert lists.ids is ids
    problem.check(lists, slice(None))


@every_structure
def test_no_boxes_are_entered_nor_left(build, n_axes):
    none = np.empty((n_axes, 0), np.int32)
    structure = build(none, none, np.empty(0, np.int32), [4] * n_axes)
    cells = np.array([[0, 2, 1]] * n_axes, np.int32)
    problem = Problem(none, none, np.empty(0, np.int32), [4] * n_axes, cells, np.arange(2), np.arange(1, 3))

    assert problem.found(structure) == [([], []), ([], [])]
    structure.remove(np.array([1, 2], np.int32))
    structure.insert(none, none, np.empty(0, np.int32))
    assert problem.found(structure) == [([], []), ([], [])]


@every_structure
def test_boxes_that_share_an_end_change_together(build, n_axes):
    # Three begin in cell 3, of which one is that cell alone; one ends where they begin, and one just before.
    firsts, lasts = (np.array([each] * n_axes, np.int32) for each in ([3, 3, 3, 1, 1], [7, 5, 3, 3, 2]))
    ids = np.arange(5, dtype=np.int32)
    cells = np.array([[2, 3, 4, 2]] * n_axes, np.int32)
    problem = Problem(firsts, lasts, ids, [10] * n_axes, cells, np.arange(3), np.arange(1, 4))
    structure = problem.build(build, slice(None))

    assert problem.found(structure) == [([4], [0, 1, 2]), ([2, 3], []), ([0, 1], [3, 4])]
    structure.remove(ids[[0, 3]])
    assert problem.found(structure) == [([4], [1, 2]), ([2], []), ([1], [4])]
    structure.insert(*problem.boxes([3]))
    assert problem.found(structure) == [([4], [1, 2]), ([2, 3], []), ([1], [3, 4])]


@every_structure
def test_it_answers_the_same_after_pickling(build, n_axes):
    problem = make_problem(200, 40, n_axes)
    structure = problem.build(build, slice(None))

    assert problem.found(pickle.loads(pickle.dumps(structure))) == problem.found(structure)


@every_structure
def test_its_memory_is_reported_and_bounded(build, n_axes):
    n_boxes = 1_000 if SLOW else 20_000
    structure = make_problem(n_boxes, 2, n_axes).build(build, slice(None))

    n_pickled = len(pickle.dumps(structure))
    assert max(8 * n_boxes, 0.9 * n_pickled) <= structure.nbytes <= 1.1 * n_pickled
    if build is not over_r_tree:
        assert structure.nbytes <= (34 if n_axes == 1 and build == RSList.build else 60 * n_axes) * n_boxes


def test_an_end_of_another_kind_splits_the_steps_of_its_side_and_merges_them_when_it_goes():
    firsts, lasts, ids = np.array([[1, 3, 5]], np.int32), np.array([[5, 7, 7]], np.int32), np.arange(3, dtype=np.int32)
    rs_list = RSList.build(firsts, lasts, ids, [12])
    assert rs_list.steps.tolist() == [1, 1]
    rs_list.insert(np.array([[4]], np.int32), np.array([[9]], np.int32), np.array([3], np.int32))
    assert rs_list.steps.tolist() == [0, 1]
    rs_list.remove(np.array([3], np.int32))
    assert rs_list.steps.tolist() == [1, 1]


@pytest.mark.parametrize("name", INDEXES)
def test_diff_rmq_answers_over_every_index(name):
    index = INDEXES[name]
    n_axes = 2 if 2 in index.n_fields else index.n_fields[0]
    problem = make_problem(60, 40, n_axes, points=getattr(index, "needs_points", False))

    problem.check(DiffRMQ.build(index, *problem.boxes(slice(None)), problem.n_cells), slice(None))


def test_diff_rmq_does_not_report_a_move_between_two_boxes_of_one_id():
    firsts, lasts = np.array([[1, 5]], np.int32), np.array([[3, 7]], np.int32)
    diff_rmq = over_r_tree(firsts, lasts, np.array([4, 4], np.int32), [10])
    runs = diff_rmq.changes(np.array([[0, 2, 6, 8]], np.int32), np.arange(3), np.arange(1, 4))

    assert runs.counts.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert runs.queries.tolist() == [4, 4]


def test_diff_rmq_refuses_changes_of_a_frozen_index():
    none = np.empty((1, 0), np.int32)
    diff_rmq = DiffRMQ.build(Buckets, none, none, np.empty(0, np.int32), [4])

    with pytest.raises(
        TypeError,
        match="Buckets cannot change after it is built; build it again, or use an index with insert and remove",
    ):
        diff_rmq.insert(none, none, np.empty(0, np.int32))
    with pytest.raises(TypeError, match="Buckets cannot change after it is built"):
        diff_rmq.remove(np.empty(0, np.int32))


@every_rs_list
def test_passed_boxes_are_found_after_changes_too(build, n_axes):
    # Of the two boxes between cells 1 and 9, one is removed and another inserted.
    firsts, lasts = (np.array([each] * n_axes, np.int32) for each in ([3, 5, 1, 4], [4, 7, 12, 6]))
    ids = np.array([40, 41, 42, 43], np.int32)
    lists = build(firsts[:, :3], lasts[:, :3], ids[:3], [14] * n_axes)
    lists.remove(ids[:1])
    lists.insert(firsts[:, 3:], lasts[:, 3:], ids[3:])
    cells = np.array([[2, 9, 10]] * n_axes, np.int32)
    moves, passed = lists.passed(cells, np.array([0, 1]), np.array([1, 2]))

    assert sorted(zip(moves.tolist(), passed.tolist(), strict=True)) == [(0, 41), (0, 43)]


def test_diff_rmq_does_not_report_an_id_that_both_rows_are_in_twice():
    ends = np.array([[1, 2]], np.int32), np.array([[8, 9]], np.int32)
    diff_rmq = over_r_tree(*ends, np.array([4, 4], np.int32), [12])

    assert len(diff_rmq.changes(np.array([[3, 5]], np.int32), np.array([0]), np.array([1]))) == 0


@every_rs_list
def test_a_box_beyond_its_axes_is_refused_and_nothing_is_changed(build, n_axes):
    problem = make_problem(40, 30, n_axes)
    lists = problem.build(build, slice(None))
    expected = problem.found(lists)
    for outside in (-1, problem.n_cells[-1]):
        ends = np.full((2, n_axes, 1), 1, np.int32)
        ends[int(outside > 0), -1] = outside
        with pytest.raises(ValueError, match=f"axis {n_axes - 1} has the cells 0 to {problem.n_cells[-1] - 1}; got"):
            lists.insert(*ends, np.array([40], np.int32))

        assert problem.found(lists) == expected
