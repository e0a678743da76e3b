"""The harness: experiments register here, contestants are checked and then timed here.

Contestants of one case run in one process, in turns, after a warm-up, and the median counts. Their answers are
compared over all rows, and with brute force over a sample, before any clock starts. A contestant that would exceed the
limit runs on the first rows only; its time is scaled up, and the result says so.
"""

from __future__ import annotations

import functools
import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from benchmarks.answers import Answer, AnswerInParts, brute_force
from benchmarks.peers import Peer
from benchmarks.targets import EVERY_TARGET
from benchmarks.workloads import Workload

SAMPLE = 64  # rows checked with brute force
SLOW_SECONDS = 1.5  # a contestant that takes longer runs three times only, and without a run before each
PROBE_STEP = 8  # the factor from one trial of a contestant to the next, until its time is known
Size = TypeVar("Size")


class UnknownExperimentError(Exception):
    """No experiment has this name, and none answers a target of this key."""


class AnswersDifferError(Exception):
    """Contestants disagree, so nothing is timed."""


@dataclass(frozen=True)
class Experiment:
    name: str
    targets: tuple[str, ...]  # keys of the targets that it answers
    run: Callable[[Bench], None]

    @property
    def summary(self) -> str:
        return (self.run.__doc__ or "").strip().splitlines()[0]


EXPERIMENTS: dict[str, Experiment] = {}


def all_experiments() -> dict[str, Experiment]:
    """Every experiment by name, in the order of the targets."""
    from benchmarks import experiments  # noqa: F401  registers them

    order = [target.key for target in EVERY_TARGET]
    return dict(sorted(EXPERIMENTS.items(), key=lambda item: order.index(item[1].targets[0])))


def find_experiments(names: Sequence[str]) -> list[str]:
    """The experiments with these names, or that answer the targets with these keys, each once (default: all)."""
    known = all_experiments()
    answering = {key: each.name for each in known.values() for key in each.targets} | {name: name for name in known}
    for name in names:
        if name not in answering:
            parts = [key for key in answering if key not in known]
            raise UnknownExperimentError(
                f"unknown experiment {name!r}; experiments are: {', '.join(known)}; "
                f"and by what they answer: {', '.join(parts)}"
            )
    return list(dict.fromkeys(answering[name] for name in names)) or list(known)


def experiment(*targets: str) -> Callable[[Callable[[Bench], None]], Callable[[Bench], None]]:
    """Register a function, under its own name, as the experiment that answers these targets."""

    def register(function: Callable[[Bench], None]) -> Callable[[Bench], None]:
        name = function.__name__.replace("_", "-")
        EXPERIMENTS[name] = Experiment(name, targets, function)
        return function

    return register


@dataclass(frozen=True)
class AtLeast:
    """A goal: ours is at least this many times faster than the fastest of the named contestants."""

    times: float
    than: str  # in words: "the best of DuckDB, Polars, ncls"
    names: tuple[str, ...]  # contestants whose name starts so


@dataclass
class Bench:
    """One run of one experiment: measures and stores the results as rows."""

    experiment: str
    quick: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)

    @property
    def repeats(self) -> int:
        return 2 if self.quick else 5

    @property
    def limit_seconds(self) -> float:
        """The longest time for one run of one contestant."""
        return 0.1 if self.quick else 3.0

    def size(self, full: int, quick: int) -> int:
        """The size for this kind of run."""
        return quick if self.quick else full

    def some(self, sizes: Sequence[Size]) -> Sequence[Size]:
        """All of these; in a quick run the first, the middle and the last."""
        return [sizes[place] for place in sorted({0, len(sizes) // 2, len(sizes) - 1})] if self.quick else sizes

    def say(self, words: str) -> None:
        print(f"    {words}", file=sys.stderr, flush=True)

    def race(
        self,
        target: str,
        case: str,
        workload: Workload,
        ours: Callable[[Workload], Peer],
        others: Sequence[Callable[[Workload], Peer]],
        goals: Sequence[AtLeast] = (),
        limit_seconds: float | None = None,
        **more: Any,
    ) -> Peer:
        """Check and time contestants over one workload, and judge ours by the goals. Returns ours, loaded.

        `more` is stored with each time. `limit_seconds` overrides the limit for one run of one contestant.
        """
        self.say(f"{case}: {workload.n_queries:,} queries, {workload.n_rows:,} rows")
        peers = [make(workload) for make in (ours, *others)]
        try:
            slices = [self._fit(peer, workload, limit_seconds or self.limit_seconds) for peer in peers]
            n_pairs = _check(peers, slices, workload)
            resets = {peer.name: peer.reset for peer in peers}
            timings = self.time_in_turns({peer.name: peer.match for peer in peers}, before=resets)
        finally:
            for peer in peers[1:]:
                peer.close()
        scales = {peer.name: workload.n_rows / n for peer, n in zip(peers, slices, strict=True)}
        seconds = {name: statistics.median(runs) * scales[name] for name, runs in timings.items()}
        for peer, n_rows in zip(peers, slices, strict=True):
            self._record_time(target, case, peer, seconds, timings[peer.name], workload, n_rows, n_pairs, more)
        for goal in goals:
            self._judge(target, case, goal, seconds, peers[0].name)
        return peers[0]

    def time_in_turns(
        self,
        runs: Mapping[str, Callable[[], Any]],
        repeats: int | None = None,
        before: Mapping[str, Callable[[], Any]] | None = None,
    ) -> dict[str, list[float]]:
        """Seconds of each run of each callable. They take turns; a turn is one warm-up run and one timed run.

        Calls in `before` precede each run and are not timed.
        """

        def time_run(name: str) -> float:
            if before:
                before[name]()
            return time_once(runs[name])

        names = list(runs)
        timings: dict[str, list[float]] = {name: [] for name in names}
        for round_ in range(repeats or self.repeats):
            for place in range(len(names)):
                name = names[(round_ + place) % len(names)]
                is_slow = bool(timings[name]) and timings[name][0] > SLOW_SECONDS
                if is_slow and round_ >= 3:
                    continue
                if not is_slow:
                    time_run(name)  # caches and memory pools still have data of the others
                timings[name].append(time_run(name))
        return timings

    def record(self, target: str, case: str, contestant: str, seconds: float, **more: Any) -> None:
        """Store a time that `race` did not measure."""
        self.say(f"{case}: {contestant} {seconds:.4g} s")
        self._keep("time", target, case, contestant=contestant, seconds=seconds, **more)

    def verdict(self, target: str, case: str, measure: str, value: float, bound: float, sense: str = "at most") -> None:
        """Store a measured value with its bound; `sense` is "at least" or "at most"."""
        met = value >= bound if sense == "at least" else value <= bound
        self.say(f"{case}: {measure} {value:.4g} ({sense} {bound:g}: {'met' if met else 'MISSED'})")
        self._keep("verdict", target, case, measure=measure, value=value, bound=bound, sense=sense, met=bool(met))

    def note(self, target: str, case: str, measure: str, value: float, **more: Any) -> None:
        """Store a measured value without a bound."""
        self.say(f"{case}: {measure} {value:.4g}")
        self._keep("value", target, case, measure=measure, value=value, **more)

    def _keep(self, kind: str, target: str, case: str, **more: Any) -> None:
        self.rows.append({"experiment": self.experiment, "kind": kind, "target": target, "case": case} | more)

    def _fit(self, peer: Peer, workload: Workload, limit_seconds: float) -> int:
        """Load as many rows as the peer can match within the limit, and warm it up. Returns their number."""

        def time_match() -> float:
            peer.reset()
            return time_once(peer.match)

        n_rows = first = max(1, workload.n_rows // PROBE_STEP**3)
        while True:
            peer.load(workload.head(n_rows))
            if n_rows == first:
                time_match()  # compiles
            seconds = time_match()
            wanted = min(workload.n_rows, n_rows * PROBE_STEP)
            if seconds * wanted / n_rows > limit_seconds:  # a larger batch may have compiled some more
                seconds = time_match()
            if n_rows == workload.n_rows or seconds * wanted / n_rows > limit_seconds:
                return n_rows
            n_rows = wanted

    def _record_time(
        self,
        target: str,
        case: str,
        peer: Peer,
        seconds: Mapping[str, float],
        runs: list[float],
        workload: Workload,
        n_rows: int,
        n_pairs: int,
        more: Mapping[str, Any],
    ) -> None:
        name, ours = peer.name, next(iter(seconds))
        notes = [peer.note] if peer.note else []
        if n_rows < workload.n_rows:
            notes.append(f"measured on {n_rows:,} rows and scaled up")
        self.record(
            target,
            case,
            name,
            seconds[name],
            runs=[round(run, 6) for run in runs],
            ratio=seconds[name] / seconds[ours],
            n_queries=workload.n_queries,
            n_rows=workload.n_rows,
            n_rows_measured=n_rows,
            n_pairs=n_pairs,
            answers=workload.answers,
            note="; ".join(notes),
            **more,
        )

    def _judge(self, target: str, case: str, goal: AtLeast, seconds: Mapping[str, float], ours: str) -> None:
        rivals = {name: value for name, value in seconds.items() if name != ours and name.startswith(goal.names)}
        best = min(rivals, key=lambda name: rivals[name])
        self.verdict(
            target,
            case,
            f"times faster than {goal.than} ({best})",
            rivals[best] / seconds[ours],
            goal.times,
            "at least",
        )


def _check(peers: Sequence[Peer], slices: Sequence[int], workload: Workload) -> int:
    """Compare all answers with ours, and a sample of ours with brute force. Returns the number of pairs."""
    ours, n_ours = _answer(peers[0]), slices[0]
    digest = functools.cache(ours.digest)
    chosen = np.unique(np.linspace(0, n_ours - 1, SAMPLE).astype(np.int64))
    _check_sample(peers[0], ours, workload, chosen)
    for peer, n_rows in zip(peers[1:], slices[1:], strict=True):
        n_common = min(n_rows, n_ours)
        theirs, mine = _answer(peer).digest(n_common), digest(n_common)
        if theirs != mine:
            raise AnswersDifferError(
                f"{peer.name} finds {theirs.n_pairs:,} {workload.answers} in {n_common:,} rows and {peers[0].name} "
                f"{mine.n_pairs:,}; checksums {theirs.total:x} and {mine.total:x}"
            )
    return digest(n_ours).n_pairs


def _answer(peer: Peer) -> Answer | AnswerInParts:
    peer.reset()
    return peer.answer(peer.match())


def _check_sample(peer: Peer, answer: Answer | AnswerInParts, workload: Workload, chosen: np.ndarray[Any, Any]) -> None:
    expected, found = brute_force(workload, chosen), answer.of_rows(chosen)
    for row, queries in expected.items():
        if found.get(row, []) != queries:
            raise AnswersDifferError(
                f"{peer.name} finds {len(found.get(row, []))} queries for row {row} and brute force {len(queries)}"
            )


def time_once(run: Callable[[], Any]) -> float:
    """Seconds of one call, without freeing its result."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        result = run()
        seconds = time.perf_counter() - start
    finally:
        gc.enable()
    del result
    return seconds
