"""Races of moving joins: over the same sets and updates, compared with each other, then timed."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import AnswersDifferError, Bench, time_once
from benchmarks.moving_sets import MovingSets, Step
from benchmarks.moving_streets import StreetSets
from benchmarks.peers.mtb_join import Keys, Make, MovingPeer

Sets = MovingSets | StreetSets
INTERVAL = 60
CHECKED = 2  # timestamps after which all contestants' pairs are compared, before any clock starts
CHECKED_SHARES = (
    0.0,
    0.25,
    0.5,
    0.75,
    1.0,
)  # of the interval: times at which the pairs of an initial join are compared
MS, READ = "milliseconds a timestamp", "node accesses a timestamp"


@dataclass(frozen=True)
class Case:
    """A point on the axis of a figure, and the number of objects per set if that is not the axis."""

    target: str
    x: float | str
    x_name: str
    n_objects: int | None = None

    def __str__(self) -> str:
        return f"{self.x_name}: {self.x:,}" if isinstance(self.x, int) else f"{self.x_name}: {self.x}"

    def note(self, bench: Bench, measure: str, contestant: str, value: float) -> None:
        """Store a measured value as a point of the contestant's line. Each number of objects has its own panel."""
        point: dict[str, Any] = {"x": self.x, "x_name": self.x_name, "contestant": contestant}
        if self.n_objects is not None:
            measure += f", {self.n_objects:,} objects a set"
            point["n_objects"] = self.n_objects
        note_point(bench, self.target, str(self), measure, value, point)


def note_point(bench: Bench, target: str, case: str, measure: str, value: float, point: dict[str, Any]) -> None:
    bench.note(target, case, f"{measure}, {point['contestant']}", value, y_name=measure, **point)


def make_sets(bench: Bench, n: int | None = None, kind: Any = "uniform", **options: Any) -> MovingSets:
    """Table 2 of the paper; its default is 10k objects per set. Updated objects get new places, as the authors' do."""
    n = n or bench.size(10_000, 300)
    options.setdefault("max_update_interval", INTERVAL)
    space = 1000.0 if not bench.quick else 200.0
    return MovingSets(kind, n, n, jumps=True, space=space, object_share=options.pop("object_share", 0.005), **options)


def find_sizes(bench: Bench, most: int = 100_000) -> Sequence[int]:
    return (200, 500) if bench.quick else [n for n in (1_000, 10_000, 50_000, 100_000) if n <= most]


def count_steps(bench: Bench) -> int:
    return bench.size(30, 5)


def race_initial(
    bench: Bench, case: Case, sets: Sets, makes: Sequence[type[MovingPeer]], n_turns: int | None = None
) -> None:
    """Time the initial join of trees that are already built, and of ours from arrays to stored pairs."""
    peers = _make_peers(sets, makes, "initial")
    for peer in peers:
        if peer.tally is not None:
            peer.tally.reset()
        peer.keep(None, peer.initial())
        for share in CHECKED_SHARES if peer.knows_later else CHECKED_SHARES[:1]:
            _check_same(peer, peers[0], share * sets.max_update_interval)
        if peer.tally is not None:
            case.note(bench, "node accesses", peer.name, peer.tally.node_accesses)
    _settle()
    runs = bench.time_in_turns({peer.name: peer.initial for peer in peers}, n_turns)
    for peer in peers:
        case.note(bench, "milliseconds", peer.name, 1e3 * statistics.median(runs[peer.name]))


def race_maintenance(bench: Bench, case: Case, sets: Sets, makes: Sequence[type[MovingPeer]]) -> None:
    """Time the updates of timestamps from the interval on, when all buckets exist."""
    interval = sets.max_update_interval
    steps = list(sets.steps(interval + CHECKED + count_steps(bench)))
    peers = _make_peers(sets, makes, "maintenance")
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
        case.note(bench, MS, peer.name, 1e3 * seconds)
        if peer.tally is not None:
            case.note(bench, READ, peer.name, read)


class Maintained(NamedTuple):
    """The cost of a timestamp for one contestant, and its pairs before."""

    seconds: float
    node_accesses: float
    pairs: Keys


def maintain(bench: Bench, sets: Sets, make: Make, n_steps: int, like: Maintained | None = None) -> Maintained:
    """Time one contestant from the interval on, after one timestamp of warm-up.

    Its pairs after that one are compared with those of another over the same sets, if there is one.
    """
    interval = sets.max_update_interval
    steps = list(sets.steps(interval + 1 + n_steps))
    peer = make(*sets.start(), float(interval))
    for step in steps[:interval]:
        peer.warm(step)
    peer.begin()
    first = steps[interval]
    peer.keep(first, peer.step(first))
    pairs = peer.current(first.time)
    if like is not None:
        _compare(peer.name, pairs, "another", like.pairs, first.time)
    return Maintained(*_time_steps(bench, peer, steps[interval + 1 :]), pairs)


def _make_peers(sets: Sets, makes: Sequence[type[MovingPeer]], work: str) -> list[MovingPeer]:
    """The contestants that can handle so many objects in time. The others are checked on fewer objects."""
    a, b = sets.start()
    peers: list[Any] = [make for make in makes if len(a) <= make.most.get(work, len(a))]
    return [make(a, b, float(sets.max_update_interval)) for make in peers]


def _time_steps(bench: Bench, peer: MovingPeer, steps: Sequence[Step]) -> tuple[float, float]:
    """Mean seconds and node accesses of as many timestamps as fit into the time limit, at least three."""
    _settle()
    if peer.tally is not None:
        peer.tally.reset()
    runs: list[float] = []
    for step in steps:
        runs.append(time_once(lambda step=step: peer.step(step)))  # type: ignore[misc]
        if len(runs) >= 3 and sum(runs) > 2 * bench.limit_seconds:
            break
    return statistics.fmean(runs), (peer.tally.node_accesses / len(runs) if peer.tally is not None else 0.0)


def _settle() -> None:
    """Exclude existing objects from garbage collection, which would take a tenth of a second before each run."""
    gc.collect()
    gc.freeze()


def _check_same(peer: MovingPeer, ours: MovingPeer, now: float) -> None:
    _compare(peer.name, peer.current(now), ours.name, ours.current(now), now)


def _compare(name: str, found: Keys, other: str, expected: Keys, now: float) -> None:
    if not np.array_equal(found, expected):
        raise AnswersDifferError(
            f"{name} has {len(found):,} pairs at {now:g} and {other} {len(expected):,}; "
            f"{len(np.setxor1d(found, expected)):,} are in only one of them"
        )
