"""Moving joins: the cost model of Zhang et al., section 7, compared with the actual reads, and its recommendations."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.experiments.mtb_race import (
    MS,
    READ,
    Case,
    Sets,
    count_steps,
    find_sizes,
    maintain,
    make_sets,
    note_point,
)
from benchmarks.harness import Bench, experiment
from benchmarks.moving_sets import Step
from benchmarks.moving_streets import StreetSets
from benchmarks.peers.mtb_join import VedettePeer, warm_trees
from vedette.papers.moving import ALL_TECHNIQUES, MTBJoin
from vedette.papers.moving.cost_model import METHODS, CostModel, Method, estimate_probability

CANDIDATES = (30, 60, 90, 120, 150, 180)
INTERVAL_AXIS = "longest update interval"
ON_STREETS = (10, 20, 30, 40, 50, 60)  # vehicles update every 30 timestamps by themselves
FIGURES = {
    "uniform": "mtb-fig36",
    "battlefield": "mtb-fig37",
    "gaussian": "mtb-fig38",
    "truck": "mtb-fig39",
    "bus": "mtb-fig40",
}


@experiment("mtb-fig35")
def mtb_fig35(bench: Bench) -> None:
    """Zhang et al., figure 35: node accesses per update, predicted by the cost model and actual."""
    for interval in CANDIDATES[:2] if bench.quick else CANDIDATES:
        seen = _observe(make_sets(bench, max_update_interval=interval), [interval], ["eight-vbr"])
        expected = float(seen.models["eight-vbr"].update_costs.mean())
        for name, value in (("expected", expected), ("actual", seen.accesses)):
            point = {"x": interval, "x_name": INTERVAL_AXIS, "contestant": name}
            note_point(bench, "mtb-fig35", f"interval {interval}", "node accesses an update", value, point)
        error = 100 * abs(expected - seen.accesses) / seen.accesses
        point = {"x": interval, "x_name": INTERVAL_AXIS, "y_name": "error, %", "contestant": "expected"}
        bench.note("mtb-fig35", f"interval {interval}", "error, %", error, **point)


@experiment(*FIGURES.values())
def mtb_intervals(bench: Bench) -> None:
    """Zhang et al., figures 36 to 40: the cost of intervals, predicted at one of them and actual; and our time."""
    n = bench.size(10_000, 300)
    for kind, target in FIGURES.items():
        intervals = ON_STREETS if kind in ("truck", "bus") else CANDIDATES
        many: list[Sets] = []
        for interval in intervals[:3] if bench.quick else intervals:
            if kind in ("truck", "bus"):
                many.append(StreetSets(kind, n, n, interval))  # type: ignore[arg-type]
            else:
                many.append(make_sets(bench, kind=kind, max_update_interval=interval))
        _compare(bench, target, kind, many, (1, 2) if kind == "uniform" else (1,))


@experiment("mtb-fig41")
def mtb_fig41(bench: Bench) -> None:
    """Zhang et al., figure 41: the cost of observing six candidate intervals, by objects and by interval."""
    for n in find_sizes(bench):
        _watch(bench, Case("mtb-fig41", n, "objects a set"), make_sets(bench, n=n))
    for interval in CANDIDATES[:2] if bench.quick else CANDIDATES:
        _watch(bench, Case("mtb-fig41", interval, INTERVAL_AXIS), make_sets(bench, max_update_interval=interval))


def _watch(bench: Bench, case: Case, sets: Sets) -> None:
    seen = _observe(sets, CANDIDATES, ["eight-vbr"], count_steps(bench))
    case.note(bench, MS, "MTB-Join", 1e3 * seen.join_seconds)
    case.note(bench, MS, "with the cost model", 1e3 * (seen.join_seconds + seen.model_seconds))
    bench.note(case.target, str(case), "overhead, %", 100 * seen.model_seconds / seen.join_seconds)


def _compare(bench: Bench, target: str, kind: str, many: Sequence[Sets], at_option: Sequence[int]) -> None:
    """Costs of candidates predicted by the model at some of them, the actual costs, and our time."""
    intervals = [sets.max_update_interval for sets in many]
    seen, ours = {}, {}
    for place, (interval, sets) in enumerate(zip(intervals, many, strict=True)):
        seen[interval] = _observe(sets, intervals, METHODS if place in at_option else [])
        ours[interval] = maintain(bench, sets, VedettePeer, count_steps(bench)).seconds
    for place in at_option:
        # The first is figure (a), the next (b), in its own panel.
        suffix = "" if place == at_option[0] else f", told at {intervals[place]}"
        _note_costs(bench, target, kind, seen, many[place], suffix)
    for interval, seconds in ours.items():
        Case(target, interval, INTERVAL_AXIS).note(bench, MS, "Vedette", 1e3 * seconds)
    actual = {interval: each.n_updates * each.accesses for interval, each in seen.items()}
    bench.note(target, kind, "interval with the fewest accesses", min(actual, key=lambda each: actual[each]))
    bench.note(target, kind, "interval at which ours takes least", min(ours, key=lambda each: ours[each]))


def _note_costs(bench: Bench, target: str, kind: str, seen: dict[int, Seen], observed: Sets, suffix: str) -> None:
    """The model's predictions for all intervals after observing one, and the actual reads of each."""
    watched = seen[observed.max_update_interval]
    for place, (interval, each) in enumerate(seen.items()):
        costs = {"actual": each.accesses}
        costs |= {method: float(model.update_costs.mean(axis=0)[place]) for method, model in watched.models.items()}
        for name, cost in costs.items():
            Case(target, interval, INTERVAL_AXIS).note(bench, READ + suffix, name, each.n_updates * cost)
    best = watched.models["eight-vbr"].recommend((observed.n_a, observed.n_b), [watched.probability] * 2)
    bench.note(target, kind, f"interval that the model recommends{suffix}", best.interval)


class Seen(NamedTuple):
    """Observations over some timestamps: the model's and the actual ones."""

    models: dict[Method, CostModel]
    accesses: float  # an update
    n_updates: float  # a timestamp
    probability: float  # of an update at a timestamp, voluntarily
    join_seconds: float  # a timestamp
    model_seconds: float


def _observe(sets: Sets, candidates: Sequence[int], methods: Sequence[Method], n_steps: int | None = None) -> Seen:
    """Run MTB-Join for one more interval while the model observes it."""
    interval, (a, b) = sets.max_update_interval, sets.start()
    # The model predicts the reads of single updates.
    join = MTBJoin.build(a, b, 0.0, float(interval), techniques=ALL_TECHNIQUES._replace(group_updates=False))
    models = {method: CostModel.make(candidates, a, b, 0.0, sets.space**2, method) for method in methods}
    join_runs, model_runs, n_updates, ages, updated = [], [], [], [], np.zeros(len(a))
    for step in sets.steps(interval + (n_steps or interval)):
        age = step.time - updated[step.a_places]
        updated[step.a_places] = step.time
        if step.time <= interval:
            warm_trees(join, step)
            continue
        ages.append(age)
        n_updates.append(len(step.a_places) + len(step.b_places))
        times = [time.perf_counter()]
        _update(join, step)
        times.append(time.perf_counter())
        for model in models.values():
            model.observe(join)
        times.append(time.perf_counter())
        join_runs.append(times[1] - times[0])
        model_runs.append(times[2] - times[1])
    return Seen(
        models,
        join.tally.node_accesses / sum(n_updates),
        statistics.fmean(n_updates),
        estimate_probability(np.concatenate(ages), interval),
        statistics.median(join_runs),
        statistics.median(model_runs),
    )


def _update(join: MTBJoin, step: Step) -> None:
    join.update(step.time, step.a_places, step.a_motions, step.b_places, step.b_motions)
