"""Moving joins: the cost model of Zhang et al., section 7, beside what updates do read, and what it recommends."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.experiments.mtb_join import MS, READ, Sets, count_steps, find_sizes, maintain, make_sets, note_point
from benchmarks.harness import Bench, experiment
from benchmarks.peers.mtb_join import VedettePeer, warm_trees
from vedette.indexes.moving import ALL_TECHNIQUES, MTBJoin
from vedette.indexes.moving.cost_model import METHODS, CostModel, Method, estimate_probability
from vedette.workload.moving import Step
from vedette.workload.moving_streets import StreetSets

CANDIDATES = (30, 60, 90, 120, 150, 180)
ON_STREETS = (10, 20, 30, 40, 50, 60)  # vehicles update every 30 timestamps of their own
FIGURES = {
    "uniform": "mtb-fig36",
    "battlefield": "mtb-fig37",
    "gaussian": "mtb-fig38",
    "truck": "mtb-fig39",
    "bus": "mtb-fig40",
}


@experiment("mtb-fig35")
def mtb_fig35(bench: Bench) -> None:
    """Zhang et al., figure 35: node accesses an update as the cost model expects them, and as they are."""
    for interval in CANDIDATES[:2] if bench.quick else CANDIDATES:
        seen = _observe(make_sets(bench, max_update_interval=interval), [interval], ["eight-vbr"])
        expected = float(seen.models["eight-vbr"].update_costs.mean())
        for name, value in (("expected", expected), ("actual", seen.accesses)):
            point = {"x": interval, "x_name": "longest update interval", "contestant": name}
            note_point(bench, "mtb-fig35", f"interval {interval}", "node accesses an update", value, point)
        error = 100 * abs(expected - seen.accesses) / seen.accesses
        bench.note("mtb-fig35", f"interval {interval}", "error, %", error)


@experiment(*FIGURES.values())
def mtb_intervals(bench: Bench) -> None:
    """Zhang et al., figures 36 to 40: what intervals cost as told at one of them, as they are, and what ours takes."""
    n = bench.size(10_000, 300)
    for kind, target in FIGURES.items():
        intervals = ON_STREETS if kind in ("truck", "bus") else CANDIDATES
        many: list[Sets] = []
        for interval in intervals[:3] if bench.quick else intervals:
            if kind in ("truck", "bus"):
                many.append(StreetSets(kind, n, n, interval))  # type: ignore[arg-type]
            else:
                many.append(make_sets(bench, kind=kind, max_update_interval=interval))
        _compare(bench, target, kind, many)


@experiment("mtb-fig41")
def mtb_fig41(bench: Bench) -> None:
    """Zhang et al., figure 41: what watching six candidate intervals adds to maintenance."""
    for n in find_sizes(bench):
        case = f"{n:,} objects a set"
        seen = _observe(make_sets(bench, n=n), CANDIDATES, ["eight-vbr"], count_steps(bench))
        total = seen.join_seconds + seen.model_seconds
        for name, seconds in (("MTB-Join", seen.join_seconds), ("with the cost model", total)):
            point = {"x": n, "x_name": "objects a set", "contestant": name}
            note_point(bench, "mtb-fig41", case, MS, 1e3 * seconds, point)
        bench.note("mtb-fig41", case, "overhead, %", 100 * seen.model_seconds / seen.join_seconds)


def _compare(bench: Bench, target: str, kind: str, many: Sequence[Sets]) -> None:
    """Costs of candidates as the model tells them at the second one, those of running each, and the time ours takes."""
    intervals = [sets.max_update_interval for sets in many]
    told = _observe(many[1], intervals, METHODS)
    ours, actual = {}, {}
    for place, (interval, sets) in enumerate(zip(intervals, many, strict=True)):
        seen = _observe(sets, [interval], ["eight-vbr"])
        actual[interval] = seen.n_updates * seen.accesses
        rows = {"actual": actual[interval]}
        for method, model in told.models.items():
            rows[method] = seen.n_updates * float(model.update_costs.mean(axis=0)[place])
        case, x_name = f"{kind}, interval {interval}", "longest update interval"
        for name, value in rows.items():
            note_point(bench, target, case, READ, value, {"x": interval, "x_name": x_name, "contestant": name})
        ours[interval], _ = maintain(bench, sets, VedettePeer, count_steps(bench))
        point = {"x": interval, "x_name": x_name, "contestant": "Vedette"}
        note_point(bench, target, case, MS, 1e3 * ours[interval], point)
    best = told.models["eight-vbr"].recommend((many[1].n_a, many[1].n_b), [told.probability] * 2)
    bench.note(target, kind, "interval that the model recommends", best.interval)
    bench.note(target, kind, "interval with the fewest accesses", min(actual, key=lambda each: actual[each]))
    bench.note(target, kind, "interval at which ours takes least", min(ours, key=lambda each: ours[each]))


class Seen(NamedTuple):
    """What was seen over some timestamps: by the model, and in fact."""

    models: dict[Method, CostModel]
    accesses: float  # an update
    n_updates: float  # a timestamp
    probability: float  # of an update at a timestamp, voluntarily
    join_seconds: float  # a timestamp
    model_seconds: float


def _observe(sets: Sets, candidates: Sequence[int], methods: Sequence[Method], n_steps: int | None = None) -> Seen:
    """Let MTB-Join run, from the interval on, for another one, and the model watch it."""
    interval, (a, b) = sets.max_update_interval, sets.start()
    # The model tells what updates read one by one.
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
