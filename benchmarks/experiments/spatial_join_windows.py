"""Window joins: figure 18 of Lim et al., and joins of selected ranges compared with DuckDB and IBS-JS."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.answers import Digest
from benchmarks.harness import AnswersDifferError, Bench, experiment, time_once
from benchmarks.peers.window_duckdb import DuckDBKept, DuckDBRangesThenQuery, DuckDBWindows
from benchmarks.peers.window_join import (
    WindowPeer,
    WindowWorkload,
    brute_force,
    digest_columns,
    random_joins,
    range_joins,
)
from benchmarks.peers.window_vedette import IBSJSWindows, SJJoinWindows, VedetteWindows

N_ATTRIBUTES = 4  # of each stream; the paper does not give a number
WIDTH, NARROW, BAND = 0.03, 0.01, 0.02
OVER_DUCKDB, OVER_IBS_JS, OVER_OUTPUT = 8, 10, 2
CHECKED = 2  # rows of each stream in a step whose answers are compared with brute force
TRIED = 8  # rows of each stream from which the time of a step is estimated
LIMIT_SECONDS, REPEATS = 1.0, 3  # of a step in figure 18, which has many cases, and how often it is timed
LARGE = (1_000, 100_000)  # rows of a window and queries, for about half a minute
DUCKDB_LIMIT = 10  # times the limit for DuckDB, whose time does not depend on the number of rows


@experiment("sjcq-fig18")
def sjcq_fig18(bench: Bench) -> None:
    """Lim et al., figure 18: time of a row against the number of queries, by windows of 100, 1,000 and 10,000 rows."""
    for window in (50, 100, 200) if bench.quick else (100, 1_000, 10_000):
        for n_queries in (200, 400, 800) if bench.quick else (5_000, 10_000, 20_000, 40_000):
            point = {"x": n_queries, "x_name": "queries", "y_name": f"ms a row, windows of {window:,} rows"}
            _time_figure(bench, window, n_queries, point)
    _time_figure(bench, *((100, 2_000) if bench.quick else LARGE), {})


def _time_figure(bench: Bench, window: int, n_queries: int, point: dict[str, Any]) -> None:
    """Time ours and the paper's two algorithms. Drawn if there is a point."""
    n_new = bench.size(100, 10)
    workload = random_joins(n_queries, window, n_new, N_ATTRIBUTES)
    case = f"windows of {window:,} rows, {n_queries:,} queries"
    contestants = [VedetteWindows, SJJoinWindows, IBSJSWindows]
    limit, repeats = min(LIMIT_SECONDS, bench.limit_seconds), min(REPEATS, bench.repeats)
    timings = _time(bench, case, contestants, workload, n_new, limit, repeats)
    for name, timing in timings.items():
        measure, milliseconds = f"milliseconds a row, {name}", 1e3 * timing.seconds_a_row
        more = {"n_rows_measured": 2 * timing.n_new, "note": _describe_fewer(timing, n_new)}
        bench.note("sjcq-fig18", case, measure, milliseconds, contestant=name, **more, **point)
    faster = timings["IBS-JS"].seconds_a_row / timings["SJ-Join"].seconds_a_row
    bench.note("sjcq-fig18", case, "SJ-Join, times faster than IBS-JS", faster)


@experiment("window-join")
def window_join(bench: Bench) -> None:
    """Joins of ranges over windows of 10,000 rows, by a comparison or a band, with 1,000 new rows per side at once."""
    window, n_new = bench.size(10_000, 500), bench.size(1_000, 50)
    all_tools = [VedetteWindows, IBSJSWindows, SJJoinWindows, DuckDBWindows, DuckDBRangesThenQuery, DuckDBKept]
    quickest = [VedetteWindows, IBSJSWindows, DuckDBKept]
    few, many = bench.size(1_000, 100), bench.size(10_000, 400)
    for n_queries, contestants, width, band in (
        (few, all_tools, WIDTH, BAND),
        (few, all_tools, NARROW, None),
        (few, quickest, WIDTH, None),  # with very many pairs
        (many, quickest, WIDTH, BAND),
        (many, quickest, NARROW, None),
    ):
        workload = range_joins(n_queries, window, n_new, width, band)
        words = "left.x < right.x" if band is None else f"bands of {band:.0%}"
        case = f"{n_queries:,} queries, ranges of {width:.0%}, {words}"
        timings = _time(bench, case, contestants, workload, n_new)
        _record(bench, case, timings, workload, n_new)
    for n_queries in (few, many):
        _double(bench, n_queries, window, n_new)


@dataclass(frozen=True)
class Timing:
    """The time of a contestant, measured on `n_new` rows of each stream per step, and its pairs per row."""

    seconds_a_row: float
    n_new: int
    pairs_a_row: float
    note: str


def _record(bench: Bench, case: str, timings: dict[str, Timing], workload: WindowWorkload, n_new: int) -> None:
    ours = timings[VedetteWindows.name]
    for name, timing in timings.items():
        notes = [note for note in (timing.note, _describe_fewer(timing, n_new)) if note]
        bench.record(
            "window-join",
            case,
            name,
            timing.seconds_a_row * 2 * n_new,
            ratio=timing.seconds_a_row / ours.seconds_a_row,
            n_queries=workload.n_queries,
            n_rows=2 * n_new,
            n_rows_measured=2 * timing.n_new,
            n_pairs=round(ours.pairs_a_row * 2 * n_new),
            answers="pairs",
            note="; ".join(notes),
        )
    for words, prefix, times in (("DuckDB", "DuckDB", OVER_DUCKDB), ("IBS-JS", "IBS-JS", OVER_IBS_JS)):
        best = min((name for name in timings if name.startswith(prefix)), key=lambda name: timings[name].seconds_a_row)
        measure = f"times faster than {words}" + (f" ({best})" if best != words else "")
        faster = timings[best].seconds_a_row / ours.seconds_a_row
        bench.verdict("window-join", case, measure, faster, times, "at least")


def _describe_fewer(timing: Timing, n_new: int) -> str:
    return f"measured on {2 * timing.n_new:,} rows a step and scaled up" if timing.n_new < n_new else ""


def _double(bench: Bench, n_queries: int, window: int, n_new: int) -> None:
    """The cost of bands of twice the width, measured in turns."""
    peers = {}
    for width in (BAND, 2 * BAND):
        peers[width] = VedetteWindows(range_joins(n_queries, window, n_new, WIDTH, width), n_new)
    n_pairs = {}
    for width, peer in peers.items():
        peer.prepare()
        n_pairs[width] = len(peer.answer(peer.run())[0])
    runs = bench.time_in_turns(
        {str(width): peer.run for width, peer in peers.items()},
        before={str(width): peer.prepare for width, peer in peers.items()},
    )
    once, twice = (statistics.median(runs[str(width)]) for width in peers)
    case = f"{n_queries:,} queries, bands of {BAND:.0%} and of {2 * BAND:.0%}"
    bench.note("window-join", case, "times the pairs", n_pairs[2 * BAND] / n_pairs[BAND])
    bench.verdict("window-join", case, "times the time of bands half as wide", twice / once, OVER_OUTPUT)


def _time(
    bench: Bench,
    case: str,
    contestants: Sequence[type[WindowPeer]],
    workload: WindowWorkload,
    n_new: int,
    limit_seconds: float | None = None,
    repeats: int | None = None,
) -> dict[str, Timing]:
    """Check contestants, ours first, and time steps of as many rows as each can process within the limit."""
    bench.say(f"{case}: {n_new:,} rows of either stream a step")
    peers = [make(workload, CHECKED) for make in contestants]
    try:
        _check_some(peers, workload)
        limit = limit_seconds or bench.limit_seconds
        sizes = {peer.name: _fit(peer, n_new, limit) for peer in peers}
        _check_together(peers, sizes)
        for peer in peers:
            peer.n_new = sizes[peer.name]
        n_pairs = _check_all(peers)
        runs = bench.time_in_turns(
            {peer.name: peer.run for peer in peers}, repeats, before={peer.name: peer.prepare for peer in peers}
        )
    finally:
        for peer in peers:
            peer.close()
    rows = {name: 2 * n for name, n in sizes.items()}
    return {
        peer.name: Timing(
            statistics.median(runs[peer.name]) / rows[peer.name],
            sizes[peer.name],
            n_pairs / rows[peers[0].name],
            peer.note,
        )
        for peer in peers
    }


def _check_some(peers: Sequence[WindowPeer], workload: WindowWorkload) -> None:
    """Compare the answers of one small step with brute force. Afterwards all are at the next step."""
    expected = digest_columns(brute_force(workload, workload.window, CHECKED))
    for peer in peers:
        peer.prepare()
        _compare(peer.name, peer.digest(peer.run()), "brute force", expected)
        peer.position = workload.window + CHECKED


def _check_together(peers: Sequence[WindowPeer], sizes: Mapping[str, int]) -> None:
    """Compare the answers of our algorithms for one step of as many rows as each can process within the limit.

    They keep windows, and trials have left them at different positions: those behind catch up first.
    """
    own = [peer for peer in peers if isinstance(peer, VedetteWindows)]
    last = max(peer.position for peer in own)
    for peer in own:
        peer.n_new = last - peer.position
        if peer.n_new > 0:
            peer.prepare()
            peer.run()
    digests = {}
    for peer in own:
        peer.n_new = min(sizes[each.name] for each in own)
        peer.prepare()
        digests[peer.name] = peer.digest(peer.run())
    for name, found in digests.items():
        _compare(name, found, own[0].name, digests[own[0].name])


def _check_all(peers: Sequence[WindowPeer]) -> int:
    """Compare the answers of a whole step with DuckDB, if it can process one. Returns the number of pairs."""
    ours = peers[0]
    start = ours.position
    ours.prepare()
    expected = ours.digest(ours.run())
    for peer in peers[1:]:
        if isinstance(peer, DuckDBWindows):
            peer.position = start
            if peer.n_new == ours.n_new:
                peer.prepare()
                _compare(peer.name, peer.digest(peer.run()), ours.name, expected)
    return expected.n_pairs


def _compare(name: str, found: Digest, other: str, expected: Digest) -> None:
    if found != expected:
        raise AnswersDifferError(f"{name} finds {found.n_pairs:,} pairs and {other} {expected.n_pairs:,}")


def _fit(peer: WindowPeer, n_new: int, limit_seconds: float) -> int:
    """How many rows of each stream a step may have, estimated from one row, then from more if that is fast."""
    limit = limit_seconds * (DUCKDB_LIMIT if isinstance(peer, DuckDBWindows) else 1)
    for tried in (1, TRIED):
        peer.n_new = min(tried, n_new)
        seconds = []
        for _ in range(2):  # the first compiles
            peer.prepare()
            seconds.append(time_once(peer.run))
        fitting = max(1, min(n_new, int(peer.n_new * limit / min(seconds))))
        if fitting <= TRIED:
            break
    return fitting
