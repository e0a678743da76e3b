"""Moving joins: the cost of initial joins and timestamps compared with one pass over all pairs, and as sets grow."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vedette as vd
from benchmarks.experiments.mtb_join import INTERVAL
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.moving_sets import Distribution, MovingSets
from benchmarks.peers.mtb_join import as_rows
from vedette.native.kernels import kernel
from vedette.operators.moving_join.motions import Motions

N = 10_000  # objects of a set
SIDE, DENSITY = 5.0, 0.01  # of an object; objects of a set in a unit of space
N_CHECKS = 6  # timestamps at which pairs are compared with brute force
SAMPLED = 1_000  # objects of set a whose pairs are compared
ROUNDING = 1e-9  # pairs closer to touching than this may count as either
MANY_PAIRS = 10_000  # with fewer, bytes per pair would mostly measure spare room
INITIAL, UNIFORM, OTHERS, LARGE, PAIR_BYTES = 0.03, 0.003, 0.006, 0.2, 48  # at most; all but the last in passes

Timestamp = tuple[dict[str, Any], dict[str, Any], float]


@experiment("moving")
def moving(bench: Bench) -> None:
    """Initial join and 360 timestamps of moving joins, by U: one compiled pass over all pairs of 10k x 10k objects."""
    n, n_steps = bench.size(N, 1_000), bench.size(360, 12)
    cases: list[tuple[Distribution, int, float]] = [
        ("uniform", n, UNIFORM),
        ("gaussian", n, OTHERS),
        ("battlefield", n, OTHERS),
        ("uniform", 10 * n, LARGE),
    ]
    yardstick = Yardstick.of(make_sets("uniform", n))
    found = []
    for kind, size, bound in cases:
        run = Run.prepare(make_sets(kind, size, space=_space(n)), n_steps)
        pair_bytes = run.check()
        yardstick.measure()
        repeats = bench.repeats if size == n else 1
        initial = statistics.median(time_once(run.start) for _ in range(repeats + 1))
        steps = statistics.median(run.time_steps() for _ in range(min(repeats, 3)))
        yardstick.measure()
        found.append((f"{size:,} x {size:,} {kind}", bound, initial, steps, run.n_pairs, pair_bytes))
    unit, case = yardstick.seconds, f"{n:,} x {n:,} uniform"
    bench.record("moving", case, "one pass over all pairs, U", unit, runs=[round(run, 6) for run in yardstick.runs])
    for case, bound, initial, steps, n_pairs, pair_bytes in found:
        bench.record("moving", case, "Vedette, initial join", initial)
        bench.record("moving", case, "Vedette, a timestamp", steps, n_pairs=round(n_pairs))
        if case == found[0][0]:
            bench.verdict("moving", case, "U, initial join", initial / unit, INITIAL)
        else:
            bench.note("moving", case, "U, initial join", initial / unit)
        bench.verdict("moving", case, f"U, a timestamp of {_kind_of(bound)}", steps / unit, bound)
        if pair_bytes:
            bench.verdict("moving", case, "bytes a stored pair", pair_bytes, PAIR_BYTES)


@experiment("moving-growth")
def moving_growth(bench: Bench) -> None:
    """Time of a timestamp from 10k to 400k objects per set at the same density, and the number of pairs."""
    sizes = (500, 1_000, 2_000) if bench.quick else (10_000, 20_000, 50_000, 100_000, 200_000, 400_000)
    first: tuple[float, float] | None = None
    for n in sizes:
        run = Run.prepare(make_sets("uniform", n), bench.size(2 * INTERVAL, 12), n_before=bench.size(INTERVAL, 6))
        run.check()
        seconds = run.time_steps()
        first = first or (seconds, run.n_pairs)
        case, point = f"{n:,} objects a set", {"x": n, "x_name": "objects a set"}
        bench.say(f"{case}: {run.n_pairs:,.0f} pairs at a time")
        for measure, contestant, value in (
            ("milliseconds a timestamp", "Vedette", 1e3 * seconds),
            ("times as much as at first", "Vedette's time", seconds / first[0]),
            ("times as much as at first", "pairs", run.n_pairs / first[1]),
            ("times as much as at first", "all pairs there could be", (n / sizes[0]) ** 2),
        ):
            bench.note(
                "moving-growth", case, f"{measure}, {contestant}", value, y_name=measure, contestant=contestant, **point
            )


@dataclass
class Run:
    """Two sets and their updates, converted to columns before any clock starts."""

    sets: MovingSets
    a: dict[str, Any]
    b: dict[str, Any]
    steps: list[Timestamp]
    n_before: int  # steps that are not timed
    join: vd.MovingJoin
    n_pairs: float = 0.0  # at a timestamp, on average

    @classmethod
    def prepare(cls, sets: MovingSets, n_steps: int, n_before: int = 0) -> Run:
        a, b = (as_rows(np.arange(len(each)), each) for each in sets.start())
        steps = [
            (as_rows(each.a_places, each.a_motions), as_rows(each.b_places, each.b_motions), each.time)
            for each in sets.steps(n_before + n_steps)
        ]
        return cls(sets, a, b, steps, n_before, vd.MovingJoin(max_update_interval=sets.max_update_interval))

    def start(self) -> Any:
        """Build the join from arrays, up to stored pairs."""
        return self.join.load(a=self.a, b=self.b, time=0)

    def step(self, timestamp: Timestamp) -> Any:
        """The updates of a timestamp, and the pairs that intersect then."""
        a, b, now = timestamp
        self.join.update(a=a, b=b, time=now)
        return self.join.pairs(at=now)

    def time_steps(self) -> float:
        """Mean seconds of a timestamp."""
        self.start()
        for timestamp in self.steps[: self.n_before]:
            self.step(timestamp)
        gc.collect()
        gc.disable()
        try:
            begin = time.perf_counter()
            for timestamp in self.steps[self.n_before :]:
                self.step(timestamp)
            return (time.perf_counter() - begin) / len(self.steps[self.n_before :])
        finally:
            gc.enable()

    def check(self) -> float:
        """Compare pairs with brute force at some timestamps. Returns the most bytes per stored pair.

        All timestamps are run, which also compiles.
        """
        self.start()
        places = [np.array(motions["id"]) for motions in (self.a, self.b)]
        now = [_stack(motions, 0.0) for motions in (self.a, self.b)]
        some = np.random.default_rng(1).permutation(len(places[0]))[:SAMPLED]
        checked = set(np.linspace(0, len(self.steps) - 1, N_CHECKS).astype(int).tolist())
        counts, pair_bytes = [], 0.0
        for number, timestamp in enumerate(self.steps):
            pairs = self.step(timestamp)
            counts.append(pairs.num_rows)
            for motions, changed in zip(now, timestamp[:2], strict=True):
                motions[changed["id"]] = _stack(changed, timestamp[2])
            if number in checked:
                _compare(pairs, now[0], now[1], some, timestamp[2])
                n_stored = self.join.n_pairs
                if n_stored > MANY_PAIRS and self.join.join is not None:
                    pair_bytes = max(pair_bytes, self.join.join.pair_nbytes / n_stored)
        self.n_pairs = statistics.fmean(counts[self.n_before :])
        return pair_bytes


@dataclass
class Yardstick:
    """One pass over all pairs of two sets, a measure of the machine's speed."""

    columns: tuple[NDArray[np.float64], ...]
    runs: list[float] = field(default_factory=list)

    @classmethod
    def of(cls, sets: MovingSets) -> Yardstick:
        made = cls(tuple(column for motions in sets.start() for column in _columns(motions)))
        count_meetings(*(column[:, :1] for column in made.columns), float(INTERVAL))  # compiles
        return made

    def measure(self) -> None:
        self.runs += [time_once(lambda: count_meetings(*self.columns, float(INTERVAL))) for _ in range(2)]

    @property
    def seconds(self) -> float:
        return statistics.median(self.runs)


@kernel
def count_meetings(
    a_lows: NDArray[np.float64], a_highs: NDArray[np.float64],
    a_low_speeds: NDArray[np.float64], a_high_speeds: NDArray[np.float64],
    b_lows: NDArray[np.float64], b_highs: NDArray[np.float64],
    b_low_speeds: NDArray[np.float64], b_high_speeds: NDArray[np.float64],
    end: float,
) -> int:  # fmt: skip
    """How many pairs intersect within [0, end]. A pair is skipped as soon as its interval is empty."""
    n = 0
    for a in range(a_lows.shape[1]):
        for b in range(b_lows.shape[1]):
            first, last = 0.0, end
            for d in range(a_lows.shape[0]):
                gap, speed = a_highs[d, a] - b_lows[d, b], a_high_speeds[d, a] - b_low_speeds[d, b]
                if speed > 0.0:
                    first = max(first, -gap / speed)
                elif speed < 0.0:
                    last = min(last, gap / -speed)
                elif gap < 0.0:
                    last = -np.inf
                if first > last:
                    break
                gap, speed = b_highs[d, b] - a_lows[d, a], b_high_speeds[d, b] - a_low_speeds[d, a]
                if speed > 0.0:
                    first = max(first, -gap / speed)
                elif speed < 0.0:
                    last = min(last, gap / -speed)
                elif gap < 0.0:
                    last = -np.inf
                if first > last:
                    break
            n += first <= last
    return n


def make_sets(kind: Distribution, n: int, space: float | None = None) -> MovingSets:
    """Sets with the density of 10k objects in 1000 x 1000, unless `space` is given. Updated objects get new places."""
    space = space or _space(n)
    return MovingSets(kind, n, n, INTERVAL, space=space, object_share=SIDE / space, jumps=True)


def _space(n: int) -> float:
    return float(np.sqrt(n / DENSITY))


def _kind_of(bound: float) -> str:
    return {UNIFORM: "uniform sets", OTHERS: "Gaussian sets and battlefield", LARGE: "ten times as many objects"}[bound]


def _columns(motions: Motions) -> Sequence[NDArray[np.float64]]:
    return motions.lows, motions.highs, motions.low_speeds, motions.high_speeds


_AXES = tuple((f"{axis}_low", f"{axis}_high", f"v{axis}_low", f"v{axis}_high") for axis in "xy")


def _stack(rows: dict[str, Any], time: float) -> NDArray[np.float64]:
    """One row per object: its time, and the sides and speeds along each axis."""
    names = [name for axis in _AXES for name in axis]
    return np.stack([np.full(len(rows["id"]), time), *(rows[name] for name in names)], axis=1)


def _compare(pairs: Any, a: NDArray[np.float64], b: NDArray[np.float64], some: NDArray[np.int64], time: float) -> None:
    """Raise unless the pairs of some objects of set a are those whose sides overlap at a time."""
    found = np.stack([pairs.column(name).to_numpy() for name in ("a", "b")])
    is_some = np.zeros(len(a), np.bool_)
    is_some[some] = True
    mine = set(map(tuple, found[:, is_some[found[0]]].T.tolist()))
    sides = [_sides_at(each, time) for each in (a, b)]
    for i in some.tolist():
        gaps = np.minimum(sides[0][:, 1, i, None] - sides[1][:, 0], sides[1][:, 1] - sides[0][:, 0, i, None]).min(
            axis=0
        )
        surely, perhaps = np.flatnonzero(gaps > ROUNDING), np.flatnonzero(np.abs(gaps) <= ROUNDING)
        for j in surely.tolist():
            if (i, j) not in mine:
                raise AnswersDifferError(
                    f"at {time:g} objects {i} and {j} intersect, but the join does not report them"
                )
            mine.remove((i, j))
        mine -= {(i, j) for j in perhaps.tolist()}
    if mine:
        i, j = next(iter(mine))
        raise AnswersDifferError(f"at {time:g} objects {i} and {j} do not intersect, but the join reports them")


def _sides_at(motions: NDArray[np.float64], time: float) -> NDArray[np.float64]:
    """(axis, low or high, object)"""
    passed = time - motions[:, 0]
    sides = [[motions[:, 1 + 4 * d + k] + motions[:, 3 + 4 * d + k] * passed for k in range(2)] for d in range(2)]
    return np.array(sides)
