"""A contestant that answers something else than the others is found out before any clock starts."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from benchmarks.answers import brute_force
from benchmarks.experiments.band_join import _check_structures
from benchmarks.experiments.mtb_race import Case, maintain, race_initial
from benchmarks.experiments.spatial_join_windows import Timing, _check_together, _describe_fewer
from benchmarks.harness import AnswersDifferError, Bench
from benchmarks.moving_sets import MovingSets
from benchmarks.peers.band_join import band_clusters
from benchmarks.peers.border.cells import BmqOnAxes, DiffRmqOnCells
from benchmarks.peers.mtb_join import MovingPeer, MTBPeer, VedettePeer
from benchmarks.peers.window_join import random_joins
from benchmarks.peers.window_vedette import IBSJSWindows, SJJoinWindows, VedetteWindows
from benchmarks.workloads import price_streams
from vedette.papers.bands import STRUCTURES

SETS = MovingSets(n_a=40, n_b=40, max_update_interval=4, space=60.0, object_share=0.05, jumps=True)


@pytest.fixture(autouse=True)
def _thaw():
    """Races exclude existing objects from garbage collection."""
    yield
    gc.unfreeze()


class Told(MovingPeer):
    """Pairs as one likes, by time."""

    name = "told"
    later = ()
    at_once = ()

    def __init__(self, a, b, interval):
        self.interval = interval

    def initial(self):
        return None

    def warm(self, step):
        pass

    def step(self, step):
        pass

    def keep(self, step, found):
        pass

    def current(self, time):
        return np.array(self.later if time > 0 else self.at_once, np.int64)


class Wrong(Told):
    """Right at the time of the join only."""

    name = "wrong"
    later = (7,)


class OfNow(Wrong):
    name = "of now"
    knows_later = False


def test_initial_joins_are_compared_up_to_the_interval():
    case = Case("mtb-fig24", 1, "objects a set")
    with pytest.raises(AnswersDifferError, match="wrong has 1 pairs at 1 and told 0; 1 are in only one of them"):
        race_initial(Bench("x", quick=True), case, SETS, [Told, Wrong])

    race_initial(Bench("x", quick=True), case, SETS, [Told, OfNow])
    race_initial(Bench("x", quick=True), case, SETS, [VedettePeer, MTBPeer])


def test_contestants_of_maintenance_are_compared_with_the_one_before():
    bench = Bench("x", quick=True)
    first = maintain(bench, SETS, MTBPeer, 3)
    assert len(first.pairs) > 0
    assert maintain(bench, SETS, VedettePeer, 3, first).pairs.tolist() == first.pairs.tolist()

    with pytest.raises(AnswersDifferError, match=r"wrong has 1 pairs at 5 and another"):
        maintain(bench, SETS, Wrong, 3, first)


def test_structures_of_bands_are_compared_by_their_pairs_and_by_the_queries_they_affect():
    workload = band_clusters(40, 30, 3, 4, 20)
    shifts = (-workload.rows).tolist()
    ends = workload.lows, workload.highs
    scan, mixed = (STRUCTURES[name].build(workload.values, *ends) for name in ("Scan", "Mixed"))
    _check_structures({"Scan": scan, "Mixed": mixed}, shifts)

    class Forgets:
        pairs = mixed.pairs

        def affected(self, shift):
            return mixed.affected(shift)[1:]

    with pytest.raises(AnswersDifferError, match="Forgets finds other queries than the scan"):
        _check_structures({"Scan": scan, "Forgets": Forgets()}, shifts)


class Forgets(IBSJSWindows):
    """Loses a pair where there are more rows than in the step that is compared with brute force."""

    name = "forgets"

    def answer(self, result):
        columns = super().answer(result)
        return tuple(column[1:] for column in columns) if self.n_new > 2 else columns


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # hashes wrap around, without a compiler, too
def test_algorithms_of_window_joins_are_compared_on_as_many_rows_as_the_slowest_can_take():
    workload = random_joins(60, 20, 6, 2)
    peers = [make(workload, 2) for make in (VedetteWindows, SJJoinWindows, IBSJSWindows)]
    peers[0].prepare()
    peers[0].run()  # ahead of the others
    _check_together(peers, {"Vedette": 6, "SJ-Join": 6, "IBS-JS": 4})
    assert [peer.position for peer in peers] == [26] * 3

    peers.append(Forgets(workload, 2))
    with pytest.raises(AnswersDifferError, match=r"forgets finds \d+ pairs and Vedette"):
        _check_together(peers, {"Vedette": 6, "SJ-Join": 6, "IBS-JS": 4, "forgets": 4})


def test_events_over_cells_of_many_axes_equal_brute_force():
    moves = price_streams(100, 10, 5, 0.5, 0.2, n_fields=3)
    expected = brute_force(moves, np.arange(moves.n_rows))
    for make in (BmqOnAxes, DiffRmqOnCells):
        peer = make(moves)
        peer.load(moves)
        found = peer.answer(peer.match()).of_rows(np.arange(moves.n_rows))
        assert {row: queries for row, queries in found.items() if queries} == {
            row: queries for row, queries in expected.items() if queries
        }
    assert sum(map(len, expected.values())) > 100


def test_the_number_of_measured_rows_of_a_step_is_shown():
    assert _describe_fewer(Timing(1.0, 3, 9.0, ""), 100) == "measured on 6 rows a step and scaled up"
    assert _describe_fewer(Timing(1.0, 100, 9.0, ""), 100) == ""
