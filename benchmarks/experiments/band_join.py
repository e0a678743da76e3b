"""Band joins: lookups compared with other tools, updates compared with lookups, and the figures of Agarwal et al."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import vedette as vd
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.peers.band_duckdb import DuckDBBands
from benchmarks.peers.band_join import BandPeer, BandWorkload, band_clusters, brute_force
from benchmarks.peers.band_ncls import NclsBands
from benchmarks.peers.band_numpy import NumpyBands
from benchmarks.peers.band_vedette import ScanBands, VedetteBands, VedetteBandsAtOnce
from vedette.operators.band_join.index.partition import find_partition
from vedette.papers.bands import STRUCTURES

N_CLUSTERS, SCATTERED, PAIRS_A_ROW = 100, 0.1, 5_000
RIVALS = [NumpyBands, DuckDBBands, NclsBands]
TIMES, MOST = 25, 10  # the lead over the rivals, and the greatest cost of an update, in lookups
WITH_TAU, WITH_BANDS = 10, 2  # the least growth of the stabbing set with tau, and the greatest with the number of bands
LOGARITHM = 2  # times as long with hundreds of times the tau: the ratio of log(m tau)
TAU, AT_ONE_TAU = "tau, stabbing points", "n, bands, at one tau"
LOOK_UPS = ("microseconds a look-up of pairs", "microseconds a look-up of queries")
# For today's larger setting: those whose memory does not grow with m times n.
LINEAR = ("Scan", "StabbingSet", "StabbingGroups")


@experiment("band-pairs")
def band_pairs(bench: Bench) -> None:
    """Pairs of each of 200 new values with 100k stored ones, for 100k bands in 100 clusters and some anywhere."""
    _race(bench, "band-pairs", "pairs", [VedetteBandsAtOnce, VedetteBands, ScanBands, *RIVALS])


@experiment("band-queries")
def band_queries(bench: Bench) -> None:
    """Bands that 200 new values affect, with the same values and bands: all values at once, and one by one."""
    _race(bench, "band-queries", "queries at once", [VedetteBandsAtOnce, ScanBands, *RIVALS])
    _race(bench, "band-queries", "queries", [VedetteBands, ScanBands, *RIVALS], is_judged=False)


@experiment("band-updates")
def band_updates(bench: Bench) -> None:
    """One value or one band inserted or removed, compared with a lookup, with 100k values on both sides."""
    workload, n = _clusters(bench, bench.size(200, 20)), bench.size(500, 50)
    bands = vd.BandQuerySet()
    bands.add_many(np.arange(len(workload.lows)), workload.lows, workload.highs)
    join, pairs = bands.monitor(report="queries"), bands.monitor()
    for side, values in (("left", workload.values), ("right", workload.values[::-1] + 1)):
        join.insert(**{side: {"id": np.arange(len(values)), "value": values}})
    pairs.load(join.save())
    random = np.random.default_rng(5)
    values = random.choice(workload.values, n + 1) + 0.5
    new = band_clusters(1, n + 1, N_CLUSTERS, 1, 1.0, SCATTERED, seed=22)
    start = max(len(workload.lows), len(workload.values))

    def add(i: int) -> Any:
        bands.add(start + i, new.lows[i], new.highs[i])
        return join.refresh()

    def remove(i: int) -> Any:
        bands.remove(start + i)
        return join.refresh()

    steps: dict[str, Callable[[int], Any]] = {
        "the look-up of a value that comes, pairs": lambda i: pairs.insert(
            right={"id": [start + i], "value": [float(values[i])]}
        ),
        "a value that goes, pairs": lambda i: pairs.delete(right=[start + i]),
        "the look-up of a value that comes, queries": lambda i: join.insert(
            right={"id": [start + i], "value": [float(values[i])]}
        ),
        "a value that goes, queries": lambda i: join.delete(right=[start + i]),
        "a band that comes": add,
        "a band that goes": remove,
    }
    case = f"{len(workload.values):,} values on either side, {len(workload.lows):,} bands"
    seconds: dict[str, float] = {}
    for name, step in steps.items():
        step(0)
        seconds[name] = statistics.median(time_once(lambda i=i, step=step: step(i)) for i in range(1, n + 1))  # type: ignore[misc]
        bench.record("band-updates", case, name, seconds[name])
    look_up = seconds["the look-up of a value that comes, queries"]
    for name in ("a value that goes, queries", "a band that comes", "a band that goes"):
        bench.verdict("band-updates", case, f"times a look-up, {name}", seconds[name] / look_up, MOST)
    _time_own_updates(bench, case, bands, join, values, look_up)


def _time_own_updates(bench: Bench, case: str, bands: Any, join: Any, values: Any, look_up: float) -> None:
    """The cost of inserting or deleting a value without its look-up."""
    points, name = join.left.points, np.array([1 << 30], np.int32)
    for words, step in (("put in", points.add), ("taken out", points.remove)):
        runs = []
        for value in values:
            one = np.array([value])
            if words == "taken out":
                points.add(one, name)
            runs.append(time_once(lambda one=one, step=step: step(one, name)))  # type: ignore[misc]
            if words == "put in":
                points.remove(one, name)
        seconds = statistics.median(runs)
        bench.record("band-updates", case, f"a value {words}, without its look-up", seconds)
        bench.verdict("band-updates", case, f"times a look-up, a value {words}", seconds / look_up, MOST)
    bench.note("band-updates", case, "bytes a band", bands.groups().nbytes / len(bands))
    bench.note("band-updates", case, "bytes a value", points.nbytes / len(points))


@experiment("band-tau")
def band_tau(bench: Bench) -> None:
    """Size and time of all structures against the number of stabbing points, tau, and of some with more bands."""
    n = bench.size(1_000, 100)
    for n_clusters in (1, n // 100, n // 10, n):
        workload = band_clusters(n, n, n_clusters, 50, n / 20)
        tau = _count_points(workload)
        _compare(bench, "band-tau", f"tau = {tau:,}", workload, tau, TAU)
    for n_bands in (n, 2 * n, 4 * n, 8 * n):
        workload = band_clusters(n, n_bands, n // 10, 50, n / 20)
        case = f"tau = {_count_points(workload):,}, n = {n_bands:,}"
        _compare(bench, "band-tau", case, workload, n_bands, AT_ONE_TAU, LINEAR)
    for n_clusters in (1, 10):
        _compare_large(bench, "band-tau", _large(bench), _large(bench), n_clusters, pairs_a_row=_large(bench) / 10)
    _judge_growth(bench, "band-tau", "MB", WITH_TAU, "at least", x_name=TAU)
    for measure in LOOK_UPS:
        _judge_growth(bench, "band-tau", measure, LOGARITHM, x_name=TAU)
        _judge_growth(bench, "band-tau", measure, WITH_BANDS, x_name=AT_ONE_TAU)


@experiment("band-values")
def band_values(bench: Bench) -> None:
    """Size and time of all structures against the number of values, m."""
    for n_values in _sizes(bench):
        workload = band_clusters(n_values, bench.size(1_000, 100), 10, 50, 50)
        _compare(bench, "band-values", f"m = {n_values:,}", workload, n_values, "m, values")
    _compare_large(bench, "band-values", _large(bench), bench.size(1_000, 100), 10, pairs_a_row=1_000)


@experiment("band-bands")
def band_bands(bench: Bench) -> None:
    """Size and time of all structures against the number of bands, n."""
    for n_bands in _sizes(bench):
        workload = band_clusters(bench.size(1_000, 100), n_bands, 10, 50, 50)
        _compare(bench, "band-bands", f"n = {n_bands:,}", workload, n_bands, "n, bands")
    _compare_large(bench, "band-bands", bench.size(1_000, 100), _large(bench), 10, pairs_a_row=1_000)
    for measure in ("MB", *LOOK_UPS):
        _judge_growth(bench, "band-bands", measure, WITH_BANDS, x_name="n, bands")


@experiment("band-output")
def band_output(bench: Bench) -> None:
    """Size and time of all structures against the number of pairs that a lookup finds, k."""
    n = bench.size(1_000, 100)
    for pairs_a_row in (n / 100, n / 10, n, 10 * n):
        workload = band_clusters(n, n, 10, 50, pairs_a_row)
        _compare(bench, "band-output", f"k = {pairs_a_row:,.0f}", workload, pairs_a_row, "k, pairs found")
    for share in (100, 10):
        _compare_large(bench, "band-output", _large(bench), _large(bench), 10, pairs_a_row=_large(bench) / share)


def _large(bench: Bench) -> int:
    return bench.size(1_000_000, 10_000)


def _sizes(bench: Bench) -> Sequence[int]:
    return (50, 100, 200) if bench.quick else (250, 500, 1_000, 2_000)


def _clusters(bench: Bench, n_rows: int) -> BandWorkload:
    n = bench.size(100_000, 5_000)
    return band_clusters(n, n, N_CLUSTERS, n_rows, PAIRS_A_ROW * n / 100_000, SCATTERED)


def _race(
    bench: Bench, target: str, report: str, contestants: Sequence[type[BandPeer]], *, is_judged: bool = True
) -> None:
    """Check and time contestants; those that would need longer than the limit run on fewer rows."""
    workload = _clusters(bench, bench.size(200, 40))
    case = f"{len(workload.values):,} values, {len(workload.lows):,} bands, {_CASES[report]}"
    bench.say(f"{case}: {len(workload.rows)} values come")
    peers = [make(workload, report) for make in contestants]
    try:
        sizes = [_fit(bench, peer) for peer in peers]
        n_found = _check(workload, report, peers)
        runs = bench.time_in_turns(
            {peer.name: peer.run for peer in peers}, before={peer.name: peer.reset for peer in peers}
        )
    finally:
        for peer in peers:
            peer.close()
    seconds = {peer.name: statistics.median(runs[peer.name]) / n for peer, n in zip(peers, sizes, strict=True)}
    for peer, n in zip(peers, sizes, strict=True):
        notes = [peer.note] if peer.note else []
        notes += [f"measured on {n:,} values"] if n < len(workload.rows) else []
        bench.record(
            target,
            case,
            peer.name,
            seconds[peer.name],
            ratio=seconds[peer.name] / seconds[peers[0].name],
            n_queries=len(workload.lows),
            n_rows=1,
            n_rows_measured=n,
            n_pairs=n_found,
            answers=report.split()[0],
            note="; ".join(notes),
        )
    best = min((peer.name for peer in peers if type(peer) in RIVALS), key=lambda name: seconds[name])
    measure, times = "times faster than the best of NumPy, DuckDB, ncls", seconds[best] / seconds[peers[0].name]
    if is_judged:
        bench.verdict(target, case, f"{measure} ({best})", times, TIMES, "at least")
    else:
        bench.note(target, case, f"{measure} ({best})", times)


_CASES = {
    "pairs": "time a value",
    "queries": "each value by itself, time a value",
    "queries at once": "all values at once, time a value",
}


def _fit(bench: Bench, peer: BandPeer) -> int:
    """Give the peer as many rows as fit into the limit. Returns their number."""
    everything = peer.rows
    peer.rows = everything[:1]
    peer.reset()
    time_once(peer.run)  # compiles
    peer.reset()
    n = min(len(everything), max(2, int(bench.limit_seconds / time_once(peer.run))))
    peer.rows = everything[:n]
    return n


def _check(workload: BandWorkload, report: str, peers: Sequence[BandPeer]) -> int:
    """Compare all answers with ours, and some of ours with brute force. Returns how much ours finds per value."""
    is_each = report != "queries at once"
    n_ours = len(peers[0].rows)
    for peer in peers[1:]:
        n = min(len(peer.rows), n_ours)
        answers = []
        for each in (peers[0], peer):
            usual, each.rows = each.rows, each.rows[:n]
            each.reset()
            answers.append(_sorted(each.answer(each.run())))
            each.rows = usual
        if not np.array_equal(*answers):
            raise AnswersDifferError(f"{peer.name} finds other {report} than {peers[0].name}")
    peers[0].reset()
    ours = _sorted(peers[0].answer(peers[0].run()))
    chosen = range(0, n_ours, max(1, n_ours // 4)) if is_each else range(0)
    for row in chosen:
        found = {tuple(line) for line in ours[ours[:, 0] == row, 1:].tolist()}
        if found != brute_force(workload, row, report):
            raise AnswersDifferError(f"{peers[0].name} finds other {report} for row {row} than brute force")
    return round(len(ours) / n_ours) if is_each else len(ours)


def _sorted(columns: Any) -> Any:
    table = np.stack([np.asarray(column, np.int64) for column in columns], axis=1)
    return table[np.lexsort(table.T[::-1])]


def _count_points(workload: BandWorkload) -> int:
    """The fewest points that stab all bands: tau."""
    return len(find_partition(workload.lows, workload.highs))


def _compare_large(bench: Bench, target: str, n_values: int, n_bands: int, n_clusters: int, pairs_a_row: float) -> None:
    """The same for today's larger setting, which is not drawn; with few lookups, because the scan takes long."""
    workload = band_clusters(n_values, n_bands, n_clusters, 20, pairs_a_row)
    case = f"m = {n_values:,}, n = {n_bands:,}, tau = {_count_points(workload):,}, k = {pairs_a_row:,.0f}"
    _compare(bench, target, case, workload, names=LINEAR)


def _compare(
    bench: Bench,
    target: str,
    case: str,
    workload: BandWorkload,
    x: float | None = None,
    x_name: str = "",
    names: Sequence[str] = tuple(STRUCTURES),
) -> None:
    """Size and time of each of these structures over one workload, after they agree. Drawn if there is an x."""
    shifts = (-workload.rows).tolist()
    built = {name: STRUCTURES[name].build(workload.values, workload.lows, workload.highs) for name in names}
    _check_structures(built, shifts[:5])
    runs = {}
    for name, index in built.items():
        runs[name, "pairs"] = lambda index=index: [index.pairs(shift) for shift in shifts]
        runs[name, "queries"] = lambda index=index: [index.affected(shift) for shift in shifts]
    timings = bench.time_in_turns({f"{name}: {question}": run for (name, question), run in runs.items()})
    for name, index in built.items():
        point: dict[str, Any] = {"contestant": _NAMES[name]} | ({} if x is None else {"x": x, "x_name": x_name})
        for question in ("pairs", "queries"):
            taken = 1e6 * statistics.median(timings[f"{name}: {question}"]) / len(shifts)
            measure = f"microseconds a look-up of {question}"
            bench.note(target, case, f"{measure}, {_NAMES[name]}", taken, y_name=measure, **point)
        bench.note(target, case, f"MB, {_NAMES[name]}", index.nbytes / 1e6, y_name="MB", **point)


def _check_structures(built: Mapping[str, Any], shifts: Sequence[float]) -> None:
    """Compare the pairs and the queries of all structures with those of the scan."""
    for shift in shifts:
        pairs, queries = _sorted(built["Scan"].pairs(shift)), np.sort(built["Scan"].affected(shift))
        for name, index in built.items():
            if not np.array_equal(_sorted(index.pairs(shift)), pairs):
                raise AnswersDifferError(f"{name} finds other pairs than the scan")
            if not np.array_equal(np.sort(index.affected(shift)), queries):
                raise AnswersDifferError(f"{name} finds other queries than the scan")


def _judge_growth(
    bench: Bench, target: str, measure: str, bound: float, sense: str = "at most", *, x_name: str
) -> None:
    """Judge how the stabbing set grows from the first x to the last, and note the growth of the others."""
    drawn = [row for row in bench.rows if row["target"] == target and row.get("x_name") == x_name]
    for name in _NAMES.values():
        own = [row for row in drawn if row["measure"] == f"{measure}, {name}"]
        if not own:
            continue
        times, case = own[-1]["value"] / own[0]["value"], f"{own[0]['case']} to {own[-1]['case']}"
        if name == _NAMES["StabbingSet"]:
            bench.verdict(target, case, f"times the {measure}, {name}", times, bound, sense)
        else:
            bench.note(target, case, f"times the {measure}, {name}", times)


_NAMES = {
    "Scan": "scan",
    "DifferenceTree": "tree of differences (Lemma 1)",
    "StabbingSet": "stabbing set (Lemma 5)",
    "Mixed": "mixed (Theorem 1)",
    "StabbingGroups": "Vedette's stabbing groups",
}
