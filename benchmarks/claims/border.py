"""Lee et al.: "BMQ-Index"."""

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
    number,
    ratios,
    with_today,
)

FL, W = 0.01, 0.1  # percent of the domain, unless they are varied
NEARLY_ALL = 99.0
LEVEL = 1.5  # times as long is about the same
MUCH = 2  # times as fast, or as small, is "much"; the paper has curves and no numbers
LITTLE = 2  # times as long, at most, with ten times the queries is "a slight increase"
ON_AXES = "DiffRMQ over our index"  # the rival on many axes; the paper has none
PAPER_RIVALS = ("DiffRMQ over IS-list", "DiffRMQ over CEI")


def _faster(figure: Figure) -> dict[str, float]:
    """How many times as fast as the fastest DiffRMQ, by case."""
    ours = figure.seconds("BMQ")
    rivals = [figure.seconds(name) for name in figure.contestants() if name.startswith("DiffRMQ")]
    return {case: min(times[case] for times in rivals) / seconds for case, seconds in ours.items()}


def _efficiency(figure: Figure) -> dict[str, float]:
    return figure.values("% of the queries looked at that are events, BMQ")


def _against_queries(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    found = at_least(_faster(figure), MUCH, f"BMQ is {{}} times as fast as the fastest DiffRMQ (much: {MUCH})")
    found &= at_least(_efficiency(figure), NEARLY_ALL, "{}% of the queries that BMQ reads are events")
    few, many = first_and_last(figure.seconds("BMQ"))
    sizes = first_and_last({row["case"]: row["x"] for row in figure.rows if row["kind"] == "time"})
    words = f"with {number(sizes[1] / sizes[0])} times the queries it takes {{}} times as long"
    return _and_today(found & at_most({"all": many / few}, LITTLE, words), today)


def _against_widths(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    found = at_least(_wider(figure), 1, "BMQ is {} times as fast as the fastest DiffRMQ for FL < W")
    ours, rival = figure.seconds("BMQ"), figure.seconds("DiffRMQ over our index")
    wide = {case: seconds for case, seconds in ours.items() if _percent(case) > FL}
    even = max(wide.values()) / min(wide.values())
    found &= at_most({"all": even}, LEVEL, "for FL < W its times differ by a factor of {}")
    narrow, widest = first_and_last(rival)
    return _and_today(
        found & at_least({"all": widest / narrow}, LEVEL, "DiffRMQ takes {} times as long at the widest"), today
    )


def _against_steps(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    faster = _faster(figure)
    below = {case: times for case, times in faster.items() if _percent(case) < W}
    words = f"for FL < W BMQ is {{}} times as fast as the fastest DiffRMQ (much: {MUCH})"
    found = at_least(below, MUCH, words)
    at_width = [times for case, times in faster.items() if _percent(case) >= W]
    if not at_width:
        return _and_today(found, today)
    is_slightly_slower = 1 / LEVEL <= at_width[-1] < 1
    words = "as in the paper," if is_slightly_slower else "unlike in the paper, where it is slightly slower,"
    words_of_today = f"at FL = W, {words} it is {number(at_width[-1])} times as fast"
    found &= Finding(True if is_slightly_slower else None, words_of_today)
    return _and_today(found, today)


def _memory(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    ours = figure.values("MB, BMQ")
    is_list, cei = (ratios(figure.values(f"MB, {name}"), ours) for name in PAPER_RIVALS)
    found = [
        at_least(is_list, MUCH, f"an IS-list takes {{}} times the memory of BMQ (much: {MUCH})"),
        at_least(cei, MUCH, "CEI takes {} times the memory of BMQ"),
    ]
    by_width = figure.values("MB, BMQ", "W = ")
    even = {"all": max(by_width.values()) / min(by_width.values())}
    same = at_most(even, 1.05, "BMQ takes {} times as much memory at one W as at another")
    found.append(Finding(True, "BMQ takes the same memory at any W") if same.holds else same)
    grown = {}
    others = dict.fromkeys(row["contestant"] for row in figure.rows if row["contestant"].startswith(PAPER_RIVALS[1]))
    for name in others:
        narrow, wide = first_and_last(figure.values(f"MB, {name}", "W = "))
        grown[name] = wide / narrow
    words = f"CEI grows {{}} times with W (rapidly: {LEVEL})"
    found.append(at_least(grown, LEVEL, words))
    sizes = [figure.values(f"MB, {name}", "N = ") for name in PAPER_RIVALS]
    found.append(above(ratios(sizes[1], sizes[0]), 1, "CEI takes {} times that of an IS-list"))
    of_today = {name: ratios(today.values(f"MB, {name}"), today.values("MB, BMQ")).values() for name in PAPER_RIVALS}
    words_of_today = {"they take {} times as much": {name: size for name, sizes in of_today.items() for size in sizes}}
    return with_today(all_of(found), words_of_today)


def _on_axes(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    below = {row["case"] for row in figure.rows if row.get("x", 1) < 1}
    ours = figure.seconds("BMQ")
    faster = {case: times for case, times in ratios(figure.seconds(ON_AXES), ours).items() if case in below}
    found = [at_least(faster, 1, "for FL < W BMQ is {} times as fast as DiffRMQ")]
    for n_axes in (2, 3):
        over_one = {
            case: seconds / ours[case.replace(f"{n_axes} axes", "1 axis")]
            for case, seconds in ours.items()
            if case.startswith(f"{n_axes} axes")
        }
        most = (n_axes - 1) * n_axes**0.5
        words = f"on {n_axes} axes it takes {{}} times as long as on one (the paper: {number(most)})"
        found.append(at_most(over_one, most, words))
    sizes = ratios(figure.values(f"MB, {ON_AXES}"), figure.values("MB, BMQ"))
    found.append(above(sizes, 1, "DiffRMQ takes {} times its memory"))
    lead = ratios(today.seconds(ON_AXES), today.seconds("BMQ"))
    return with_today(all_of(found), {"{} times as fast": lead})


def _and_today(found: Finding, today: Figure) -> Finding:
    """The same, and BMQ compared with DiffRMQ."""
    return with_today(found, {"{} times as fast": _faster(today)})


def _wider(figure: Figure) -> dict[str, float]:
    return {case: times for case, times in _faster(figure).items() if _percent(case) > FL}


def _percent(case: str) -> float:
    """The number in "W = 0.05%"."""
    return float(case.rpartition("= ")[2].rstrip("%"))


CLAIMS = [
    Claim(
        "bmq-fig6",
        "figure 6",
        "for any number of queries, all queries that BMQ reads are events, and it is much faster than DiffRMQ; its "
        "time grows only a little",
        _against_queries,
    ),
    Claim(
        "bmq-fig7",
        "figure 7",
        "the time of BMQ does not depend on the width of queries, that of DiffRMQ grows with it",
        _against_widths,
    ),
    Claim(
        "bmq-fig8",
        "figure 8",
        "BMQ is much faster than DiffRMQ if FL is below W, and slightly slower at FL = W",
        _against_steps,
    ),
    Claim(
        "bmq-fig9",
        "figure 9",
        "BMQ takes much less memory than DiffRMQ over IS-list, and even less than over CEI, whose memory increases "
        "rapidly with the width of queries; the memory of BMQ does not depend on the width",
        _memory,
    ),
    Claim(
        "bmq-axes",
        "section 4",
        "on many axes search stays fast, with (d - 1) sqrt(d) times the time on one axis, and memory low, because a "
        "box is listed twice per axis; measured in a separate report",
        _on_axes,
    ),
]
