"""The techniques of sections 5.4 and 6: what each saves, and the pairs that Figure 11 as printed would lose."""

from __future__ import annotations

import numpy as np
import pytest
from papers.moving.boxes import SLOW, as_dict, as_motions

from vedette.operators.moving_join.motions import Motions
from vedette.papers.moving import ALL_TECHNIQUES, NO_TECHNIQUES, MTBJoin, NaiveJoin, TCJoin, Techniques
from vedette.papers.moving.nodes import as_slots
from vedette.papers.moving.plane_sweep import choose_dimension, find_meetings, make_found

N, CAPACITY = (250, 25) if SLOW else (1500, 40)


def crowd(seed, n=N, slow=1.0):
    """Small boxes all over a square, `slow` times as fast in x as in y."""
    numbers = np.random.default_rng(seed)
    lows, speeds = numbers.uniform(0, 300, (2, n)), numbers.uniform(-1, 1, (2, n)) * [[slow], [1.0]]
    return Motions(lows, lows + 5.0, speeds, speeds.copy(), np.zeros(n))


def run(techniques, join=TCJoin, **options):
    built = join.build(crowd(1), crowd(2), 0.0, 20.0, techniques=techniques, capacity=CAPACITY, **options)
    return built, as_dict(built.initial_pairs())


def sweep(a, b):
    """The pairs that a sweep along the first dimension finds."""
    tally = np.zeros(4, np.int64)
    slots = [np.arange(len(each)) for each in (a, b)]
    found = make_found(len(a) * len(b))
    n = find_meetings(
        as_slots(as_motions(a)), slots[0], as_slots(as_motions(b)), slots[1], (0.0, 2.0), (0.0, 2.0),
        Techniques(plane_sweep=True), found, tally,
    )  # fmt: skip
    return sorted(zip(found.a[:n].tolist(), found.b[:n].tolist(), strict=True)), int(tally[2])


def test_a_sweep_compares_what_a_wide_rectangle_passed_with_the_next_ones_too():
    """With a shared cursor, the first of `a` would move past all of `b`, and the second find nothing left."""
    wide = [
        ([0.0, 0.0], [9.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0),
        ([1.0, 0.0], [9.0, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0),
    ]
    b = [([2.0 + i, 0.0], [2.5 + i, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0) for i in range(3)]

    assert sweep(wide, b)[0] == [(i, j) for i in range(2) for j in range(3)]
    assert sweep(b, wide)[0] == [(j, i) for j in range(3) for i in range(2)]


def test_a_sweep_compares_only_what_meets_in_its_dimension():
    still = [([float(3 * i), 0.0], [3.0 * i + 1, 1.0], [0.0, 0.0], [0.0, 0.0], 0.0) for i in range(10)]
    pairs, n_compared = sweep(still, still)

    assert pairs == [(i, i) for i in range(10)]
    assert n_compared == 10


def test_the_dimension_with_the_least_sum_of_speeds_is_chosen():
    for slow, expected in ((0.1, 0), (10.0, 1)):
        slots, places = as_slots(crowd(1, 20, slow)), np.arange(20)
        assert choose_dimension(slots, places, slots, places) == expected


def test_techniques_save_comparisons_and_no_accesses():
    """Figure 22: in CPU time all of them win, in node accesses none."""
    none, pairs = run(NO_TECHNIQUES)
    counts = {}
    for name, techniques in {
        "PS": Techniques(plane_sweep=True),
        "IC": Techniques(intersection_check=True),
        "IP": Techniques(plane_sweep=True, intersection_check=True),
    }.items():
        built, found = run(techniques)
        counts[name] = built.tally.comparisons

        assert found == pairs
        assert built.tally.node_accesses == none.tally.node_accesses
    assert counts["PS"] < none.tally.comparisons
    assert counts["IP"] < counts["IC"] < none.tally.comparisons


def test_the_improved_order_saves_accesses():
    """Section 6.1: of a pair of nodes of which the first has nothing to offer, the second is not read."""
    check, pairs = run(Techniques(plane_sweep=True, intersection_check=True))
    ordered, found = run(Techniques(plane_sweep=True, intersection_check=True, improved_order=True))

    assert found == pairs
    assert ordered.tally.node_accesses < check.tally.node_accesses
    assert ordered.tally.page_reads <= ordered.tally.node_accesses


def test_a_group_of_updates_reads_fewer_nodes_than_one_after_the_other():
    """Section 6.2."""
    places, changed = np.arange(0, N, 10, dtype=np.int32), crowd(3).take(np.arange(0, N, 10))
    none, nothing = np.empty(0, np.int32), Motions.empty(2)
    accesses, answers = {}, []
    for is_grouped in (False, True):
        built, _ = run(ALL_TECHNIQUES._replace(group_updates=is_grouped))
        built.tally.reset()
        answers.append(as_dict(built.update(1.0, places, changed.rebased(1.0), none, nothing)))
        accesses[is_grouped] = built.tally.node_accesses

    assert answers[0] == answers[1]
    assert len(answers[0]) > 10
    assert accesses[True] < accesses[False] / 2


def test_an_algorithm_that_looks_less_far_ahead_reads_fewer_nodes():
    """Figure 21, and sections 5.2 and 5.3."""
    counts = {}
    for join in (NaiveJoin, TCJoin, MTBJoin):
        options = {} if join is NaiveJoin else {"techniques": NO_TECHNIQUES}
        built = join.build(crowd(1), crowd(2), 0.0, 20.0, capacity=CAPACITY, **options)
        built.initial_pairs()
        counts[join] = built.tally.node_accesses
    assert counts[MTBJoin] == counts[TCJoin] < counts[NaiveJoin]


@pytest.mark.parametrize("techniques", [NO_TECHNIQUES, ALL_TECHNIQUES])
def test_trees_of_different_heights_are_joined(techniques):
    few, many = crowd(4, 5), crowd(5, N)
    expected = as_dict(NaiveJoin.build(few, many, 0.0, 20.0, capacity=N).initial_pairs())
    within = {pair for pair, (start, _) in expected.items() if start <= 20.0}
    for a, b in ((few, many), (many, few)):
        found = as_dict(TCJoin.build(a, b, 0.0, 20.0, techniques=techniques, capacity=4).initial_pairs())
        assert {pair if a is few else pair[::-1] for pair in found} == within
