"""Wu, Chen and Yu: "Indexing Continual Range Queries for Efficient Stream Processing"."""

from __future__ import annotations

from benchmarks.claims.claim import (
    Claim,
    Figure,
    Finding,
    above,
    all_of,
    at_least,
    at_most,
    first_and_last,
    ratios,
    tell_today,
)

NEARLY = 2  # times the time of the best is "near-best"
SLOW = 2  # times the time of LCI-BV is "not a good search performance"
OVER_R_TREE = 3  # of the 5.1 and 4.6 times at 32,000 queries
MODEST = 3  # times the memory is a "modest" increase
INTERVALS = ("LCI", "SCI", "Dlist", "IS-list")  # of the paper, beside LCI-BV
PAPER_SIDES = {20: (8, 16), 40: (16, 16)}  # L by W: the best by memory, and by time
FIGURE_13 = (("", 8), ("W = 40, ", 16))  # how cases begin, and the paper's L


def _search_time(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    lists, ours = figure.seconds("Dlist"), figure.seconds("LCI-BV")
    others = [name for name in ("LCI-BV", *INTERVALS) if name != "Dlist"]
    found = [
        at_least(ratios(figure.seconds(name), lists), 1, f"{name} takes {{}} times the time of direct lists")
        for name in others
    ]
    near = f"near-best is up to {NEARLY} times theirs, and LCI-BV takes {{}}"
    found.append(at_most(ratios(ours, lists), NEARLY, near))
    slow = ratios(figure.seconds("IS-list"), ours)
    found.append(at_least(slow, SLOW, f"slow is {SLOW} times LCI-BV, and an IS-list takes {{}}"))
    ours = today.seconds("LCI-BV")
    told = {
        "LCI-BV takes {} times the time of direct lists": ratios(ours, today.seconds("Dlist")),
        "an IS-list {} times that of LCI-BV": ratios(today.seconds("IS-list"), ours),
    }
    return tell_today(all_of(found), told)


def _interval_memory(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    found = [
        at_least(times, 1, f"{name} takes {{}} times the memory of LCI-BV") for name, times in _sizes(figure).items()
    ]
    times = {name: size for name, sizes in _sizes(today).items() for size in sizes.values()}
    return tell_today(all_of(found), {"the others take {} times the memory of LCI-BV": times})


def _sizes(figure: Figure) -> dict[str, dict[str, float]]:
    """How many times the memory of LCI-BV each of the others takes, by case."""
    return {name: ratios(figure.values(f"MB, {name}"), figure.values("MB, LCI-BV")) for name in INTERVALS}


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
    grows = all(small <= large for small, large in zip(best[20], best[40], strict=True)) and best[20] != best[40]
    return Finding(True if best == PAPER_SIDES else None if grows else False, "; ".join(words))


def _over_r_tree(figure: Figure) -> Finding:
    """By the paper's L and by the one that is chosen; the difference in microseconds, by the paper's."""
    today, figure = figure.today(), figure.drawn()
    slow, chosen, paper = figure.microseconds("R-tree"), figure.microseconds("VCR"), _with_paper_sides(figure)
    gaps = {case: slow[case] - paper[case] for case in slow if case in paper}
    groups = {f"{begin}{placed}, ": placed for begin, _ in FIGURE_13 for placed in ("uniform", "90-10")}
    if any(not _under(gaps, (group,)) for group in groups):
        return Finding(None, "not all was measured")
    found = []
    for placed in ("90-10", "uniform"):
        under = tuple(group for group in groups if groups[group] == placed)
        told = f"on {placed} rectangles an R-tree takes {{}} times the time of VCR with the L that is chosen"
        found.append(at_least(_under(ratios(slow, chosen), under), OVER_R_TREE, told))
        found.append(at_least(_under(ratios(slow, paper), under), OVER_R_TREE, "{} with the paper's L"))
    ends = [first_and_last(_under(gaps, (group,))) for group in groups]
    grown = {group: many - few for group, (few, many) in zip(groups, ends, strict=True)}
    found.append(above(grown, 0, "the difference is {} microseconds a row larger with the most queries"))
    twins = {case: case.replace("90-10", "uniform") for case in gaps if "90-10" in case}
    wider = {case: gaps[case] - gaps[twin] for case, twin in twins.items() if twin in gaps}
    found.append(above(wider, 0, "and {} on 90-10 rectangles than on uniform ones"))
    memory = figure.values("MB, R-tree")
    more = "VCR takes {} times the memory of an R-tree with the L that is chosen"
    found.append(at_most(ratios(figure.values("MB, VCR"), memory), MODEST, more))
    found.append(at_most(ratios(_with_paper_sides(figure, "MB"), memory), MODEST, "{} with the paper's"))
    slow, memory = today.microseconds("R-tree"), today.values("MB, R-tree")
    told_today = {
        "an R-tree takes {} times the time of VCR": ratios(slow, today.microseconds("VCR")),
        "VCR {} times the memory of an R-tree": ratios(today.values("MB, VCR"), memory),
    }
    return tell_today(all_of(found), told_today)


def _with_paper_sides(figure: Figure, measure: str = "") -> dict[str, float]:
    """Of VCR with the paper's L, microseconds a row or another measure by case."""
    found = {}
    for begin, longest in FIGURE_13:
        name = f"VCR, L = {longest}"
        values = figure.values(f"{measure}, {name}") if measure else figure.microseconds(name)
        found |= {case: value for case, value in values.items() if case.startswith("W = 40") == bool(begin)}
    return found


def _under(values: dict[str, float], begins: tuple[str, ...]) -> dict[str, float]:
    return {case: value for case, value in values.items() if case.startswith(begins)}


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
        "VCR is faster than an R-tree: at 32,000 queries 60 microseconds against 304 on uniform rectangles, 5.1 times, "
        "and 280 against 1,300 where they overlap highly, 4.6 times; the difference is larger the more they overlap "
        "and the more there are; for a modest increase in memory",
        _over_r_tree,
    ),
]
