"""Lim et al.: "Continuous Query Processing in Data Streams Using Duality of Data and Queries"."""

from __future__ import annotations

from itertools import pairwise

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
    span,
    with_today,
)

OVER_IBS = 15
FLAT = 1.1  # times the best time, for N_dc from half to three times the best, as in section 7.2
ALONE_OVER_IBS = 1.4  # the smallest gain of SJ-Immediate in the paper
EVEN = 1.25  # up to this factor, times count as equal
BATCH, ALONE = "SJ-Batch", "SJ-Immediate"
PAPER_SIZE = {4: "SJ-Batch, N_dc = 200", 8: "SJ-Batch, N_dc = 400"}  # of figure 15, by attributes
LEAD = "SJ-Join, times faster than IBS-JS"
TODAY = "N_query"  # in the names of the cases of table 3 that are not the paper's


def _clusters(figure: Figure) -> Finding:
    """N_dc grows and rows take less time, and near the best N_dc its value matters little."""
    figure = Figure([row for row in figure.rows if TODAY not in row["case"]])
    sizes, times = figure.values("the best N_dc"), figure.values("microseconds a row with it")
    grown, faster, words = {}, {}, []
    for n_attributes in (4, 8):
        under = f"N_attr = {n_attributes},"
        own_sizes, own_times = (
            {case: each[case] for case in each if case.startswith(under)} for each in (sizes, times)
        )
        if not own_sizes:
            return Finding(None, "not all cases were measured")
        (small, large), (before, after) = first_and_last(own_sizes), first_and_last(own_times)
        grown[f"{n_attributes} attributes"], faster[f"{n_attributes} attributes"] = large / small, before / after
        words.append(f"from {small:g} to {large:g} with {n_attributes}")
    flat = {case: _slope(figure, case, best) for case, best in sizes.items()}
    found = above(faster, 1, "with the largest batch a row is {} times as fast as with the smallest")
    found &= above(grown, 1, f"the best N_dc goes {' and '.join(words)} attributes")
    return found & at_most(flat, FLAT, "from half to three times the best N_dc a row takes up to {} times as long")


def _slope(figure: Figure, case: str, best: float) -> float:
    """The time with the worst N_dc from half to three times the best one, divided by the best time."""
    times = {}
    for name in figure.contestants():
        size = name.rpartition("N_dc = ")[2]
        if size.isdigit() and case in (own := figure.seconds(name)):
            times[int(size)] = own[case]
    return max(seconds for size, seconds in times.items() if best / 2 <= size <= 3 * best) / times[int(best)]


def _against_queries(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    slow, grown = figure.seconds("IBS"), {}
    spans: list[str] = []
    paper: dict[str, float] = {}
    fast = ratios(slow, figure.seconds(BATCH))
    for n_attributes in (4, 8):
        under = f"N_attr = {n_attributes},"
        own = {case: times for case, times in fast.items() if case.startswith(under)}
        if not own:
            return Finding(None, "not all cases were measured")
        few, many = first_and_last(own)
        grown[f"{n_attributes} attributes"] = many / few
        spans.append(f"{span(own.values())}{'' if spans else ' times as fast as IBS'} with {n_attributes}")
        paper |= ratios(slow, figure.seconds(PAPER_SIZE[n_attributes], under))
    found = [
        at_least(fast, OVER_IBS, f"SJ-Batch is {' and '.join(spans)} attributes"),
        at_least(paper, OVER_IBS, "{} with the paper's N_dc"),
        at_least(ratios(slow, figure.seconds(ALONE)), ALONE_OVER_IBS, "SJ-Immediate is {} times as fast"),
        above(grown, 1, "with the most queries the lead of SJ-Batch is {} times as large"),
    ]
    return _and_today(all_of(found), today)


def _against_predicates(figure: Figure) -> Finding:
    found, today = [], figure.today()
    figure = figure.drawn()
    for name, is_slower in (("IBS", True), (BATCH, False), (ALONE, False)):
        few, many = first_and_last(figure.seconds(name))
        grown = {"all": many / few if is_slower else few / many}
        way = "takes {} times as long" if is_slower else "is {} times as fast"
        found.append(above(grown, 1, f"{name} {way} with predicates on all attributes"))
    return _and_today(all_of(found), today)


def _against_skew(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    even, skewed = first_and_last(figure.seconds(BATCH))
    found = above({"100%": even / skewed}, 1, "SJ-Batch is {} times as fast with all rows in a tenth of the domain")
    for name in (ALONE, "IBS"):
        times = list(figure.seconds(name).values())
        found &= at_most({"all": max(times) / min(times)}, EVEN, f"times of {name} differ by a factor of {{}}")
    return _and_today(found, today)


def _and_today(found: Finding, today: Figure) -> Finding:
    """The same, and SJ-Batch and SJ-Immediate compared with IBS."""
    slow = today.seconds("IBS")
    values_of_today = {
        "SJ-Batch is {} times as fast": ratios(slow, today.seconds(BATCH)),
        "SJ-Immediate {}": ratios(slow, today.seconds(ALONE)),
    }
    return with_today(found, values_of_today)


def _against_windows(figure: Figure) -> Finding:
    """The lead of SJ-Join, and that it grows from each window to the next."""
    faster = figure.drawn().values(LEAD)
    found = above(faster, 1, "SJ-Join is {} times as fast as IBS-JS")
    best: dict[str, float] = {}
    for case, times in faster.items():
        window = case.rsplit(", ", 1)[0]
        best[window] = max(best.get(window, 0.0), times)
    grown = {window: best[window] / best[before] for before, window in pairwise(best)}
    leads = ", ".join(f"{number(times)} with {window}" for window, times in best.items())
    found &= above(grown, 1, f"up to {leads}, {{}} times as much from each window to the next")
    words = [f"; with {case} {number(times)}" for case, times in figure.today().values(LEAD).items()]
    return Finding(found.holds, found.words + "".join(words))


CLAIMS = [
    Claim(
        "sjcq-table3",
        "table 3",
        "with larger batches the best N_dc grows, from 100 to 200 with 4 attributes and from 200 to 400 with 8, and a "
        "row takes less time; near the best N_dc its value matters little, 10% from 200 to 1,200 if 400 is best",
        _clusters,
    ),
    Claim(
        "sjcq-fig15",
        "figure 15",
        "from 10,000 to 100,000 queries SJ-Batch is 15 to 28 times as fast as IBS with 4 attributes and 16 to 36 with "
        "8, SJ-Immediate 1.7 to 3.2 and 1.4 to 2.1",
        _against_queries,
    ),
    Claim(
        "sjcq-fig16",
        "figure 16",
        "with predicates on more attributes IBS gets slower, and SJ-Batch and SJ-Immediate get faster",
        _against_predicates,
    ),
    Claim(
        "sjcq-fig17",
        "figure 17",
        "on skewed rows SJ-Batch is up to 1.7 times as fast, while SJ-Immediate and IBS take the same time",
        _against_skew,
    ),
    Claim(
        "sjcq-fig18",
        "figure 18",
        "SJ-Join is faster than IBS-JS, increasingly with larger windows: up to 2.6, 3.9 and 6.9 times, with windows "
        "of 100, 1,000 and 10,000 rows",
        _against_windows,
    ),
]
