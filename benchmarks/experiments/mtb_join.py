"""Moving joins: the algorithms of Zhang et al. and ours compared, in figures of their section 8."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.experiments.mtb_race import (
    INTERVAL,
    MS,
    READ,
    Case,
    Sets,
    count_steps,
    find_sizes,
    maintain,
    make_sets,
    note_point,
    race_initial,
    race_maintenance,
)
from benchmarks.harness import AnswersDifferError, Bench, experiment
from benchmarks.moving_sets import DISTRIBUTIONS
from benchmarks.moving_streets import Fleet, StreetSets
from benchmarks.peers.mtb_join import ETPPeer, MovingPeer, MTBPeer, NaivePeer, TCPeer, VedettePeer
from vedette.papers.moving import ALL_TECHNIQUES, NO_TECHNIQUES, MTBJoin, TCJoin, Techniques

INTERVALS = (30, 60, 90, 120, 150, 180)
FLEETS: tuple[Fleet, ...] = ("truck", "bus")
SPEEDS = (1, 2, 3, 4, 5)
SIDES = (0.5, 1, 2, 4, 8)  # percent
PROBABILITIES = (1, 2, 4, 8, 16)  # percent
SIDE, PROBABILITY = "side of an object, % of the space", "update probability, %"
FEW_TURNS = 2  # a run of ETP-Join takes a second or two


@experiment("mtb-fig20")
def mtb_fig20(bench: Bench) -> None:
    """Zhang et al., figure 20: maintenance by MTB-Join against the number of time buckets, for several intervals."""
    for interval in INTERVALS[:2] if bench.quick else INTERVALS:
        sets, like = make_sets(bench, max_update_interval=interval), None
        for n_buckets in (1, 2, 3) if bench.quick else range(1, 7):
            make = partial(MTBPeer, n_buckets=n_buckets, techniques=NO_TECHNIQUES)
            like = maintain(bench, sets, make, count_steps(bench), like)
            point = {"x": n_buckets, "x_name": "m, time buckets", "contestant": f"interval {interval}"}
            note_point(bench, "mtb-fig20", f"interval {interval}, m = {n_buckets}", MS, 1e3 * like.seconds, point)
            note_point(bench, "mtb-fig20", f"interval {interval}, m = {n_buckets}", READ, like.node_accesses, point)


@experiment("mtb-fig21")
def mtb_fig21(bench: Bench) -> None:
    """Zhang et al., figure 21: the initial join with and without a time constraint, no other technique."""
    for n in find_sizes(bench, 10_000):
        race_initial(bench, Case("mtb-fig21", n, "objects a set"), make_sets(bench, n=n), [NaivePeer, TCPeer])


@experiment("mtb-fig22")
def mtb_fig22(bench: Bench) -> None:
    """Zhang et al., figure 22: the initial join with plane sweep, dimension selection and intersection check."""
    sets = make_sets(bench)
    a, b = sets.start()
    kinds = {
        "none": NO_TECHNIQUES,
        "PS": Techniques(plane_sweep=True),
        "DP": Techniques(plane_sweep=True, dimension_selection=True),
        "IP": Techniques(plane_sweep=True, intersection_check=True),
        "all": Techniques(plane_sweep=True, dimension_selection=True, intersection_check=True),
    }
    joins = {name: TCJoin.build(a, b, 0.0, float(INTERVAL), techniques=each) for name, each in kinds.items()}
    _compare_initial(bench, "mtb-fig22", f"{len(a):,} objects a set", joins)


@experiment("mtb-fig23")
def mtb_fig23(bench: Bench) -> None:
    """Zhang et al., figure 23: the improved access order in the initial join, and group processing of updates."""
    sets = make_sets(bench, n=bench.size(50_000, 500))
    a, b = sets.start()
    plain = ALL_TECHNIQUES._replace(improved_order=False, group_updates=False)
    kinds = {"neither": plain, "both": ALL_TECHNIQUES}
    joins = {name: MTBJoin.build(a, b, 0.0, float(INTERVAL), techniques=each) for name, each in kinds.items()}
    case = f"{len(a):,} objects a set"
    _compare_initial(bench, "mtb-fig23", case, joins)
    like = None
    for name, techniques in kinds.items():
        like = maintain(bench, sets, partial(MTBPeer, techniques=techniques), count_steps(bench), like)
        point = {"x": name, "x_name": "techniques", "contestant": "maintenance"}
        note_point(bench, "mtb-fig23", case, "milliseconds, initial and a timestamp", 1e3 * like.seconds, point)
        note_point(bench, "mtb-fig23", case, "node accesses, initial and a timestamp", like.node_accesses, point)


@experiment("mtb-fig24")
def mtb_fig24(bench: Bench) -> None:
    """Zhang et al., figure 24: the initial join against the number of objects."""
    for n in find_sizes(bench):
        everyone = [VedettePeer, NaivePeer, ETPPeer, MTBPeer]
        race_initial(bench, Case("mtb-fig24", n, "objects a set"), make_sets(bench, n=n), everyone)


@experiment("mtb-fig25")
def mtb_fig25(bench: Bench) -> None:
    """Zhang et al., figure 25: the initial join of each distribution."""
    for kind in DISTRIBUTIONS:
        _race_etp(bench, "mtb-fig25", kind, "distribution", make_sets(bench, kind=kind))


@experiment("mtb-fig26")
def mtb_fig26(bench: Bench) -> None:
    """Zhang et al., figure 26: the initial join against the highest speed of objects."""
    for speed in SPEEDS[::4] if bench.quick else SPEEDS:
        _race_etp(bench, "mtb-fig26", speed, "highest speed", make_sets(bench, max_speed=float(speed)))


@experiment("mtb-fig27")
def mtb_fig27(bench: Bench) -> None:
    """Zhang et al., figure 27: the initial join against the size of objects."""
    for percent in SIDES[::3] if bench.quick else SIDES:
        _race_etp(bench, "mtb-fig27", percent, SIDE, make_sets(bench, object_share=percent / 100))


@experiment("mtb-fig28")
def mtb_fig28(bench: Bench) -> None:
    """Zhang et al., figure 28: the initial join of vehicles on streets."""
    few = bench.size(1_000, 100)
    for fleet in FLEETS:
        _race_etp(bench, "mtb-fig28", fleet, "fleet", _make_streets(fleet, bench.size(10_000, 300)))
        case = Case("mtb-fig28", fleet, "fleet", few)
        race_initial(bench, case, _make_streets(fleet, few), [VedettePeer, NaivePeer, MTBPeer], FEW_TURNS)


@experiment("mtb-fig29")
def mtb_fig29(bench: Bench) -> None:
    """Zhang et al., figure 29: maintenance against the number of objects."""
    for n in find_sizes(bench):
        everyone = [VedettePeer, NaivePeer, ETPPeer, TCPeer, MTBPeer]
        race_maintenance(bench, Case("mtb-fig29", n, "objects a set"), make_sets(bench, n=n), everyone)


@experiment("mtb-fig30")
def mtb_fig30(bench: Bench) -> None:
    """Zhang et al., figures 30 and 34: maintenance of each distribution, and of vehicles on streets."""
    for kind in DISTRIBUTIONS:
        _race_rivals(bench, "mtb-fig30", kind, "distribution", partial(make_sets, bench, kind=kind))
    for fleet in FLEETS:
        _race_rivals(bench, "mtb-fig30", fleet, "distribution", partial(_make_streets, fleet))


@experiment("mtb-fig31")
def mtb_fig31(bench: Bench) -> None:
    """Zhang et al., figure 31: maintenance against the highest speed of objects."""
    for speed in SPEEDS[::4] if bench.quick else SPEEDS:
        make = partial(make_sets, bench, max_speed=float(speed))
        _race_rivals(bench, "mtb-fig31", speed, "highest speed", make)


@experiment("mtb-fig32")
def mtb_fig32(bench: Bench) -> None:
    """Zhang et al., figure 32: maintenance against the size of objects."""
    for percent in SIDES[::3] if bench.quick else SIDES:
        make = partial(make_sets, bench, object_share=percent / 100)
        _race_rivals(
            bench, "mtb-fig32", percent, SIDE, make, n_etp=500
        )  # large objects begin and end to intersect very often


@experiment("mtb-fig33")
def mtb_fig33(bench: Bench) -> None:
    """Zhang et al., figure 33: maintenance against the probability of a voluntary update."""
    for percent in PROBABILITIES[::4] if bench.quick else PROBABILITIES:
        make = partial(make_sets, bench, update_probability=percent / 100)
        _race_rivals(bench, "mtb-fig33", percent, PROBABILITY, make)


def _race_etp(bench: Bench, target: str, x: float | str, x_name: str, sets: Sets) -> None:
    """The initial join of the algorithms that the paper compares after figure 24."""
    contestants: list[type[MovingPeer]] = [VedettePeer, ETPPeer, MTBPeer]
    race_initial(bench, Case(target, x, x_name, sets.n_a), sets, contestants, FEW_TURNS)


def _race_rivals(
    bench: Bench, target: str, x: float | str, x_name: str, make: Callable[[int], Sets], n_etp: int = 1_000
) -> None:
    """Maintenance by each rival, MTB-Join and ours: on the paper's 10k objects, or on as many as take seconds."""
    rivals: list[tuple[int, type[MovingPeer]]] = [
        (bench.size(10_000, 300), NaivePeer),
        (bench.size(n_etp, 100), ETPPeer),
    ]
    for n, rival in rivals:
        race_maintenance(bench, Case(target, x, x_name, n), make(n), [VedettePeer, rival, MTBPeer])


def _make_streets(fleet: Fleet, n: int) -> StreetSets:
    return StreetSets(fleet, n, n, INTERVAL)


def _compare_initial(bench: Bench, target: str, case: str, joins: dict[str, Any]) -> None:
    """Time and accesses of initial joins that differ in their techniques, after they agree."""
    answers: dict[str, Any] = {}
    for name, join in joins.items():
        pairs = join.initial_pairs()
        order = np.lexsort((pairs.b, pairs.a))
        answers[name] = [column[order] for column in pairs]
        join.tally.reset()
        join.initial_pairs()
    first = next(iter(answers))
    for name, answer in answers.items():
        if not all(np.array_equal(one, other) for one, other in zip(answer, answers[first], strict=True)):
            raise AnswersDifferError(f"techniques {name!r} find other pairs than {first!r}")
    counts = {name: (join.tally.node_accesses, join.tally.comparisons) for name, join in joins.items()}
    runs = bench.time_in_turns({name: join.initial_pairs for name, join in joins.items()})
    is_both = target == "mtb-fig23"
    suffix = ", initial and a timestamp" if is_both else ""
    for name in joins:
        point = {"x": name, "x_name": "techniques", "contestant": "initial join"}
        note_point(bench, target, case, f"milliseconds{suffix}", 1e3 * statistics.median(runs[name]), point)
        note_point(bench, target, case, f"node accesses{suffix}", counts[name][0], point)
        bench.note(target, case, f"comparisons, {name}", counts[name][1])
