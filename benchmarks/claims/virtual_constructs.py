"""Wu, Chen and Yu: "Indexing Continual Range Queries for Efficient Stream Processing"."""

from __future__ import annotations

from benchmarks.claims.claim import Claim, Figure, Finding, all_of, at_least, at_most, ratios

NEARLY = 2  # times the time of the best is "near-best"
OVER_R_TREE = 3
MODEST = 3  # times the memory is a "modest" increase
INTERVALS = ("LCI", "SCI", "Dlist", "IS-list")  # of the paper, beside LCI-BV
PAPER_SIDES = {20: (8, 16), 40: (16, 16)}  # L by W: the best by memory, and by time


def _search_time(figure: Figure) -> Finding:
    ours = figure.seconds("LCI-BV")
    over_lists = at_most(
        ratios(ours, figure.seconds("Dlist")), NEARLY, "LCI-BV takes {} times the time of direct lists"
    )
    return over_lists & at_least(ratios(figure.seconds("IS-list"), ours), 1, "an IS-list takes {} times that of LCI-BV")


def _interval_memory(figure: Figure) -> Finding:
    ours = figure.values("MB, LCI-BV")
    others = [(name, ratios(figure.values(f"MB, {name}"), ours)) for name in INTERVALS]
    return all_of(at_least(times, 1, f"{name} takes {{}} times the memory of LCI-BV") for name, times in others)


def _sides(figure: Figure) -> Finding:
    best, words = {}, []
    for max_side in PAPER_SIDES:
        lines = [figure.line("VCR", measure, f"L, W = {max_side}") for measure in ("MB", "microseconds a row")]
        if not all(lines):
            return Finding(None, "not all was measured")
        by_memory, by_time = (min(line, key=lambda side, line=line: line[side]) for line in lines)  # type: ignore[misc]
        best[max_side] = (by_memory, by_time)
        chosen = next(iter(figure.line("VCR, L as chosen", "MB", f"L, W = {max_side}")), 0)
        words.append(
            f"at W = {max_side} the best L is {by_memory} by memory and {by_time} by time, and {chosen} is chosen"
        )
    grows = all(small <= large for small, large in zip(best[20], best[40], strict=True))
    return Finding(True if best == PAPER_SIDES else None if grows else False, "; ".join(words))


def _over_r_tree(figure: Figure) -> Finding:
    found = []
    for placed, bound in (("90-10", OVER_R_TREE), ("uniform", 1)):
        times = ratios(figure.seconds("R-tree", placed), figure.seconds("VCR", placed))
        found.append(at_least(times, bound, f"an R-tree takes {{}} times the time of VCR on {placed} rectangles"))
    more = ratios(figure.values("MB, VCR"), figure.values("MB, R-tree"))
    return found[0] & found[1] & at_most(more, MODEST, "VCR takes {} times the memory of an R-tree")


CLAIMS = [
    Claim(
        "vci-fig6",
        "figure 6",
        "direct lists are the fastest, LCI with bit vectors is nearly as fast, and an IS-list is slow",
        _search_time,
    ),
    Claim("vci-fig7", "figure 7", "LCI with bit vectors takes the least memory", _interval_memory),
    Claim(
        "vcr-fig12",
        "figure 12",
        "the best L grows with the sides of queries: 8 by memory and 16 by time at W = 20, 16 by both at W = 40",
        _sides,
    ),
    Claim(
        "vcr-fig13",
        "figure 13",
        "VCR is faster than an R-tree, 5 times on uniform rectangles and more where they overlap highly, for a modest "
        "increase in memory",
        _over_r_tree,
    ),
]
