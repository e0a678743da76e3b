"""Wu, Chen and Yu: "Indexing Continual Range Queries for Efficient Stream Processing"."""

from __future__ import annotations

from collections.abc import Iterable

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
    span,
    with_today,
)

NEARLY = 2  # times the time of the best is "near-best"
SLOW = 2  # times the time of LCI-BV is "not a good search performance"
OVER_R_TREE = 3  # of the 5.1 and 4.6 times at 32,000 queries
MODEST = 3  # times the memory is a "modest" increase
INTERVALS = ("LCI", "SCI", "Dlist", "IS-list")  # of the paper, besides LCI-BV
PAPER_SIDES = {20: (8, 16), 40: (16, 16)}  # L by W: the best by memory, and by time
FIGURE_13 = (("", 8), ("W = 40, ", 16))  # prefixes of cases, and the paper's L
OVERLAPPED = ", overlapped"  # in the names of contestants with that decomposition
IN_USE = "construct rectangles in use"


def _search_time(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    lists, ours = figure.seconds("Dlist"), figure.seconds("LCI-BV")
    others = {name: ratios(figure.seconds(name), lists) for name in ("LCI-BV", *INTERVALS) if name != "Dlist"}
    fastest = {}
    for case in lists:
        name = min(others, key=lambda each: others[each][case])
        fastest[f"{case}, {name}"] = others[name][case]
    near = f"LCI-BV takes {{}} times the time of direct lists (near-best: up to {NEARLY})"
    slow = f"an IS-list takes {{}} times that of LCI-BV (slow: {SLOW})"
    found = [
        at_least(fastest, 1, "the next fastest takes {} times the time of direct lists"),
        at_most(ratios(ours, lists), NEARLY, near),
        at_most(ratios(ours, figure.seconds("LCI")), 1, "LCI-BV takes {} times that of plain LCI"),
        at_least(ratios(figure.seconds("IS-list"), ours), SLOW, slow),
    ]
    ours = today.seconds("LCI-BV")
    today_words = {"LCI-BV takes {} times the time of direct lists": ratios(ours, today.seconds("Dlist"))}
    return with_today(all_of(found), today_words)


def _interval_memory(figure: Figure) -> Finding:
    words = "the others take {} times the memory of LCI-BV"
    return with_today(at_least(_sizes(figure.drawn()), 1, words), {"{} times": _sizes(figure.today())})


def _sizes(figure: Figure) -> dict[str, float]:
    """The memory of each of the others divided by that of LCI-BV, by case and name."""
    ours = figure.values("MB, LCI-BV")
    return {
        f"{case}, {name}": times
        for name in INTERVALS
        for case, times in ratios(figure.values(f"MB, {name}"), ours).items()
    }


def _sides(figure: Figure) -> Finding:
    """Whether the best L, by memory and by time, is the paper's, and whether it grows with W as in the paper."""
    best: dict[str, list[int]] = {"MB": [], "microseconds a row": []}
    chosen = []
    for max_side in PAPER_SIDES:
        for measure, sides in best.items():
            line = figure.line("VCR", measure, f"L, W = {max_side}")
            if not line:
                return Finding(None, "not all cases were measured")
            sides.append(min(line, key=lambda side, line=line: line[side]))  # type: ignore[misc]
        chosen.append(next(iter(figure.line("VCR, L as chosen", "MB", f"L, W = {max_side}")), 0))
    widths = _list(PAPER_SIDES)
    grows = best["MB"][0] < best["MB"][-1]
    found = [Finding(grows, f"by memory the best L {'grows' if grows else 'does not grow'} with W")]
    for place, (words, sides) in enumerate(zip(("memory", "time"), best.values(), strict=True)):
        paper = [both[place] for both in PAPER_SIDES.values()]
        finding = f"by {words} the best L at W = {widths} is {_list(sides)}"
        comparison = "as in the paper" if sides == paper else f"in the paper {_list(paper)}"
        found.append(Finding(sides == paper, f"{finding}, {comparison}"))
    all_found = all_of(found)
    return Finding(all_found.holds, f"{all_found.words}; Vedette chooses {_list(chosen)}")


def _list(items: Iterable[object]) -> str:
    return " and ".join(str(item) for item in items)


def _over_r_tree(figure: Figure) -> Finding:
    """With the paper's L and with the chosen one; the difference in microseconds with the paper's."""
    today, figure = figure.today(), figure.drawn()
    slow, chosen, paper = figure.microseconds("R-tree"), figure.microseconds("VCR"), _with_paper_sides(figure)
    gaps = {case: slow[case] - paper[case] for case in slow if case in paper}
    groups = [f"{begin}{placed}, " for begin, _ in FIGURE_13 for placed in ("uniform", "90-10")]
    if any(not _under(gaps, group) for group in groups):
        return Finding(None, "not all cases were measured")
    found = [at_least(ratios(slow, chosen), OVER_R_TREE, "an R-tree takes {} times the time of VCR")]
    found.append(at_least(ratios(slow, paper), OVER_R_TREE, "{} times with the paper's L"))
    ends = [first_and_last(_under(gaps, group)) for group in groups]
    twins = {case: case.replace("90-10", "uniform") for case in gaps if "90-10" in case}
    wider = {group: many - few for group, (few, many) in zip(groups, ends, strict=True)}
    wider |= {case: gaps[case] - gaps[twin] for case, twin in twins.items() if twin in gaps}
    grown = above(wider, 0, "with more queries or overlap the difference is {} microseconds larger")
    found.append(Finding(True, "the difference grows with queries and overlap") if grown.holds else grown)
    memory = figure.values("MB, R-tree")
    more = f"VCR takes {{}} times the memory of an R-tree (modest: up to {MODEST})"
    found.append(at_most(ratios(figure.values("MB, VCR"), memory), MODEST, more))
    lead = ratios(today.microseconds("R-tree"), today.microseconds("VCR"))
    return with_today(_with_overlapped(figure, all_of(found)), {"an R-tree takes {} times the time": lead})


def _with_overlapped(figure: Figure, found: Finding) -> Finding:
    """The same, and the overlapped decomposition of section 3.3 compared with the simple one, with the paper's L."""
    activated, taken = (
        ratios(_with_paper_sides(figure, measure, OVERLAPPED), _with_paper_sides(figure, measure))
        for measure in (IN_USE, "")
    )
    if not activated:
        return found
    words = f"the overlapped decomposition uses {span(activated.values())} times the rectangles"
    return Finding(found.holds, f"{found.words}; {words} and takes {span(taken.values())} times the time")


def _with_paper_sides(figure: Figure, measure: str = "", decomposition: str = "") -> dict[str, float]:
    """Microseconds per row, or another measure, of VCR with the paper's L, by case."""
    found: dict[str, float] = {}
    for begin, longest in FIGURE_13:
        name = f"VCR, L = {longest}{decomposition}"
        values = figure.values(f"{measure}, {name}") if measure else figure.microseconds(name)
        found |= {case: value for case, value in values.items() if case.startswith("W = 40") == bool(begin)}
    return found


def _under(values: dict[str, float], begin: str) -> dict[str, float]:
    return {case: value for case, value in values.items() if case.startswith(begin)}


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
        "VCR is faster than an R-tree: at 32,000 queries 60 instead of 304 microseconds on uniform rectangles, 5.1 "
        "times, and 280 instead of 1,300 on highly overlapping ones, 4.6 times; the difference grows with the overlap "
        "and the number of queries; for a modest increase in memory",
        _over_r_tree,
    ),
]
