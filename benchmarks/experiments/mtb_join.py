"""Moving joins: the algorithms of Zhang et al. beside each other and beside ours, in figures of their section 8."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.peers.mtb_join import ETPPeer, Make, MovingPeer, MTBPeer, NaivePeer, TCPeer, VedettePeer
from vedette.indexes.moving import ALL_TECHNIQUES, NO_TECHNIQUES, MTBJoin, TCJoin, Techniques
from vedette.workload.moving import DISTRIBUTIONS, MovingSets, Step
from vedette.workload.moving_streets import StreetSets

Sets = MovingSets | StreetSets
INTERVAL = 60
CHECKED = 2  # timestamps after which all contestants' pairs are compared, before any clock starts
MS, READ = "milliseconds a timestamp", "node accesses a timestamp"


@experiment("mtb-fig20")
def mtb_fig20(bench: Bench) -> None:
    """Zhang et al., figure 20: maintenance by MTB-Join against the number of time buckets, under several intervals."""
    for interval in (30, 60) if bench.quick else (30, 60, 120, 180):
        sets = make_sets(bench, max_update_interval=interval)
        for n_buckets in (1, 2, 3) if bench.quick else range(1, 7):
            make = partial(MTBPeer, n_buckets=n_buckets, techniques=NO_TECHNIQUES)
            seconds, read = maintain(bench, sets, make, count_steps(bench))
            point = {"x": n_buckets, "x_name": "m, time buckets", "contestant": f"interval {interval}"}
            note_point(bench, "mtb-fig20", f"interval {interval}, m = {n_buckets}", MS, 1e3 * seconds, point)
            note_point(bench, "mtb-fig20", f"interval {interval}, m = {n_buckets}", READ, read, point)


@experiment("mtb-fig21")
def mtb_fig21(bench: Bench) -> None:
    """Zhang et al., figure 21: the initial join with and without a time constraint, no other technique."""
    for n in find_sizes(bench, 10_000):
        _race_initial(bench, "mtb-fig21", make_sets(bench, n=n), n, "objects a set", [NaivePeer, TCPeer])


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
    for name, techniques in kinds.items():
        seconds, read = maintain(bench, sets, partial(MTBPeer, techniques=techniques), count_steps(bench))
        point = {"x": name, "x_name": "techniques", "contestant": "maintenance"}
        note_point(bench, "mtb-fig23", case, "milliseconds, initial and a timestamp", 1e3 * seconds, point)
        note_point(bench, "mtb-fig23", case, "node accesses, initial and a timestamp", read, point)


@experiment("mtb-fig24")
def mtb_fig24(bench: Bench) -> None:
    """Zhang et al., figure 24: the initial join against the number of objects."""
    for n in find_sizes(bench):
        everyone = [VedettePeer, NaivePeer, ETPPeer, MTBPeer]
        _race_initial(bench, "mtb-fig24", make_sets(bench, n=n), n, "objects a set", everyone)


@experiment("mtb-fig29")
def mtb_fig29(bench: Bench) -> None:
    """Zhang et al., figure 29: maintenance against the number of objects."""
    for n in find_sizes(bench):
        everyone = [VedettePeer, NaivePeer, ETPPeer, TCPeer, MTBPeer]
        _race_maintenance(bench, "mtb-fig29", make_sets(bench, n=n), n, "objects a set", everyone)


@experiment("mtb-fig30")
def mtb_fig30(bench: Bench) -> None:
    """Zhang et al., figures 30 and 34: maintenance of each distribution, and of vehicles on streets."""
    n = bench.size(10_000, 300)
    for kind in DISTRIBUTIONS:
        _race_maintenance(bench, "mtb-fig30", make_sets(bench, kind=kind), kind, "distribution", [VedettePeer, MTBPeer])
    for fleet in ("truck", "bus"):
        streets = StreetSets(fleet, n, n, INTERVAL)
        _race_maintenance(bench, "mtb-fig30", streets, fleet, "distribution", [VedettePeer, MTBPeer])


@experiment("mtb-fig31")
def mtb_fig31(bench: Bench) -> None:
    """Zhang et al., figure 31: maintenance against the highest speed of objects."""
    for speed in (1, 5) if bench.quick else (1, 2, 3, 4, 5):
        sets = make_sets(bench, max_speed=float(speed))
        _race_maintenance(bench, "mtb-fig31", sets, speed, "highest speed", [VedettePeer, MTBPeer])


@experiment("mtb-fig32")
def mtb_fig32(bench: Bench) -> None:
    """Zhang et al., figure 32: maintenance against the size of objects."""
    for percent in (0.5, 4) if bench.quick else (0.5, 1, 2, 4, 8):
        sets = make_sets(bench, object_share=percent / 100)
        _race_maintenance(
            bench, "mtb-fig32", sets, percent, "side of an object, % of the space", [VedettePeer, MTBPeer]
        )


@experiment("mtb-fig33")
def mtb_fig33(bench: Bench) -> None:
    """Zhang et al., figure 33: maintenance against the probability of a voluntary update."""
    for percent in (1, 16) if bench.quick else (1, 2, 4, 8, 16):
        sets = make_sets(bench, update_probability=percent / 100)
        _race_maintenance(bench, "mtb-fig33", sets, percent, "update probability, %", [VedettePeer, MTBPeer])


def make_sets(bench: Bench, n: int | None = None, kind: Any = "uniform", **options: Any) -> MovingSets:
    """Table 2 of the paper; its default is 10k objects a set. Updated objects go to new places, as the authors' do."""
    n = n or bench.size(10_000, 300)
    options.setdefault("max_update_interval", INTERVAL)
    space = 1000.0 if not bench.quick else 200.0
    return MovingSets(kind, n, n, jumps=True, space=space, object_share=options.pop("object_share", 0.005), **options)


def find_sizes(bench: Bench, most: int = 100_000) -> Sequence[int]:
    return (200, 500) if bench.quick else [n for n in (1_000, 10_000, 50_000, 100_000) if n <= most]


def count_steps(bench: Bench) -> int:
    return bench.size(30, 5)


def note_point(bench: Bench, target: str, case: str, measure: str, value: float, point: dict[str, Any]) -> None:
    bench.note(target, case, f"{measure}, {point['contestant']}", value, y_name=measure, **point)


def _make_peers(bench: Bench, sets: Sets, makes: Sequence[type[MovingPeer]], work: str) -> list[MovingPeer]:
    """Those that can do so much in time; a check of so few objects is as good for the others."""
    a, b = sets.start()
    peers: list[Any] = [make for make in makes if len(a) <= make.most.get(work, len(a))]
    return [make(a, b, float(sets.max_update_interval)) for make in peers]


def _race_initial(
    bench: Bench, target: str, sets: Sets, x: float | str, x_name: str, makes: Sequence[type[MovingPeer]]
) -> None:
    """Time the initial join of trees that are there already, and of ours from arrays to stored pairs."""
    case = f"{x_name}: {x:,}" if isinstance(x, int) else f"{x_name}: {x}"
    peers = _make_peers(bench, sets, makes, "initial")
    for peer in peers:
        peer.keep(None, peer.initial())
        _check_same(peer, peers[0], 0.0)
        if peer.tally is not None:
            peer.tally.reset()
            peer.initial()
            point = {"x": x, "x_name": x_name, "contestant": peer.name}
            note_point(bench, target, case, "node accesses", peer.tally.node_accesses, point)
    runs = bench.time_in_turns({peer.name: peer.initial for peer in peers})
    for peer in peers:
        point = {"x": x, "x_name": x_name, "contestant": peer.name}
        note_point(bench, target, case, "milliseconds", 1e3 * statistics.median(runs[peer.name]), point)


def _race_maintenance(
    bench: Bench, target: str, sets: Sets, x: float | str, x_name: str, makes: Sequence[type[MovingPeer]]
) -> None:
    """Time the updates of timestamps from the interval on, when all buckets are there."""
    case = f"{x_name}: {x:,}" if isinstance(x, int) else f"{x_name}: {x}"
    interval = sets.max_update_interval
    steps = list(sets.steps(interval + CHECKED + count_steps(bench)))
    peers = _make_peers(bench, sets, makes, "maintenance")
    for peer in peers:
        for step in steps[:interval]:
            peer.warm(step)
        peer.begin()
    for step in steps[interval : interval + CHECKED]:
        for peer in peers:
            peer.keep(step, peer.step(step))
            _check_same(peer, peers[0], step.time)
    n_pairs = len(peers[0].current(steps[interval + CHECKED - 1].time))
    bench.say(f"{case}: {n_pairs:,} pairs at a time")
    for peer in peers:
        seconds, read = _time_steps(bench, peer, steps[interval + CHECKED :])
        point = {"x": x, "x_name": x_name, "contestant": peer.name}
        note_point(bench, target, case, MS, 1e3 * seconds, point)
        if peer.tally is not None:
            note_point(bench, target, case, READ, read, point)


def maintain(bench: Bench, sets: Sets, make: Make, n_steps: int) -> tuple[float, float]:
    """Seconds and node accesses a timestamp of one contestant, from the interval on; one more gets it warm."""
    interval = sets.max_update_interval
    steps = list(sets.steps(interval + 1 + n_steps))
    peer = make(*sets.start(), float(interval))
    for step in steps[:interval]:
        peer.warm(step)
    peer.step(steps[interval])
    return _time_steps(bench, peer, steps[interval + 1 :])


def _time_steps(bench: Bench, peer: MovingPeer, steps: Sequence[Step]) -> tuple[float, float]:
    """Mean seconds and node accesses of as many timestamps as there is time for, three at least."""
    if peer.tally is not None:
        peer.tally.reset()
    runs: list[float] = []
    for step in steps:
        runs.append(time_once(lambda step=step: peer.step(step)))  # type: ignore[misc]
        if len(runs) >= 3 and sum(runs) > 2 * bench.limit_seconds:
            break
    return statistics.fmean(runs), (peer.tally.node_accesses / len(runs) if peer.tally is not None else 0.0)


def _check_same(peer: MovingPeer, ours: MovingPeer, now: float) -> None:
    found, expected = peer.current(now), ours.current(now)
    if not np.array_equal(found, expected):
        raise AnswersDifferError(
            f"{peer.name} has {len(found):,} pairs at {now:g} and {ours.name} {len(expected):,}; "
            f"{len(np.setxor1d(found, expected)):,} are of one only"
        )


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
            raise AnswersDifferError(f"with techniques {name!r} other pairs are found than with {first!r}")
    counts = {name: (join.tally.node_accesses, join.tally.comparisons) for name, join in joins.items()}
    runs = bench.time_in_turns({name: join.initial_pairs for name, join in joins.items()})
    is_both = target == "mtb-fig23"
    suffix = ", initial and a timestamp" if is_both else ""
    for name in joins:
        point = {"x": name, "x_name": "techniques", "contestant": "initial join"}
        note_point(bench, target, case, f"milliseconds{suffix}", 1e3 * statistics.median(runs[name]), point)
        note_point(bench, target, case, f"node accesses{suffix}", counts[name][0], point)
        bench.note(target, case, f"comparisons, {name}", counts[name][1])
