"""Lee et al.: "BMQ-Index"."""

from __future__ import annotations

from benchmarks.claims.claim import Claim, Figure, Finding, all_of, at_least, at_most, first_and_last, number, ratios

FL, W = 0.01, 0.1  # percent of the domain, where they are not varied
NEARLY_ALL = 99.0
LEVEL = 1.5  # times as long is about the same


def _faster(figure: Figure) -> dict[str, float]:
    """How many times as fast as the fastest DiffRMQ, by case."""
    ours = figure.seconds("BMQ")
    rivals = [figure.seconds(name) for name in figure.contestants() if name.startswith("DiffRMQ")]
    return {case: min(times[case] for times in rivals) / seconds for case, seconds in ours.items()}


def _efficiency(figure: Figure) -> dict[str, float]:
    return figure.values("% of the queries looked at that are events, BMQ")


def _against_queries(figure: Figure) -> Finding:
    found = at_least(_faster(figure), 1, "BMQ is {} times as fast as the fastest DiffRMQ")
    found &= at_least(_efficiency(figure), NEARLY_ALL, "{}% of what it looks at are events")
    few, many = first_and_last(figure.seconds("BMQ"))
    sizes = first_and_last({row["case"]: row["x"] for row in figure.rows if row["kind"] == "time"})
    grown, times = many / few, sizes[1] / sizes[0]
    return found & at_most(
        {"all": grown}, times / 2, f"with {number(times)} times the queries it takes {{}} times as long"
    )


def _against_widths(figure: Figure) -> Finding:
    found = at_least(_wider(figure), 1, "BMQ is {} times as fast as the fastest DiffRMQ where FL < W")
    ours, rival = figure.seconds("BMQ"), figure.seconds("DiffRMQ over our index")
    wide = {case: seconds for case, seconds in ours.items() if _percent(case) > FL}
    even = max(wide.values()) / min(wide.values())
    found &= at_most({"all": even}, LEVEL, "there its times differ by a factor of {}")
    narrow, widest = first_and_last(rival)
    return found & at_least({"all": widest / narrow}, LEVEL, "DiffRMQ takes {} times as long at the widest")


def _against_steps(figure: Figure) -> Finding:
    faster = _faster(figure)
    below = {case: times for case, times in faster.items() if _percent(case) < W}
    found = at_least(below, 1, "BMQ is {} times as fast as the fastest DiffRMQ where FL < W")
    at_width = [times for case, times in faster.items() if _percent(case) >= W]
    if not at_width:
        return found
    slower = at_width[-1] < 1
    words = "as the paper finds," if slower else "where the paper finds it slightly slower,"
    return found & Finding(True if slower else None, f"at FL = W, {words} it is {number(at_width[-1])} times as fast")


def _memory(figure: Figure) -> Finding:
    ours = figure.values("MB, BMQ")
    names = [row["contestant"] for row in figure.rows if row["contestant"] != "BMQ"]
    found = [
        at_least(ratios(figure.values(f"MB, {name}"), ours), 1, f"{name} takes {{}} times the memory of BMQ")
        for name in dict.fromkeys(names)
    ]
    by_width = figure.values("MB, BMQ", "W = ")
    even = at_most(
        {"all": max(by_width.values()) / min(by_width.values())},
        1.05,
        "its memory differs by a factor of {} over all W",
    )
    return all_of([*found, even])


def _wider(figure: Figure) -> dict[str, float]:
    return {case: times for case, times in _faster(figure).items() if _percent(case) > FL}


def _percent(case: str) -> float:
    """Of "W = 0.05%"."""
    return float(case.rpartition("= ")[2].rstrip("%"))


CLAIMS = [
    Claim(
        "bmq-fig6",
        "figure 6",
        "whatever the number of queries, all that BMQ looks at are events, and it is much faster than DiffRMQ; its "
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
        "BMQ is much faster than DiffRMQ wherever FL is below W, and slightly slower at FL = W",
        _against_steps,
    ),
    Claim(
        "bmq-fig9",
        "figure 9",
        "BMQ takes much less memory than DiffRMQ over either index, and the same whatever the width of queries",
        _memory,
    ),
]
