"""Lim et al.: "Continuous Query Processing in Data Streams Using Duality of Data and Queries"."""

from __future__ import annotations

from benchmarks.claims.claim import (
    Claim,
    Figure,
    Finding,
    all_of,
    at_least,
    at_most,
    first_and_last,
    number,
    ratios,
    span,
)

OVER_IBS = 15
EVEN = 1.25  # times as long is not sensitive
BATCH, ALONE = "SJ-Batch", "SJ-Immediate"


def _clusters(figure: Figure) -> Finding:
    found, words = [], []
    for n_attributes in (4, 8):
        under = f"N_attr = {n_attributes},"
        sizes, times = figure.values("the best N_dc", under), figure.values("microseconds a row with it", under)
        if not sizes:
            return Finding(None, "not all was measured")
        (small, large), (before, after) = first_and_last(sizes), first_and_last(times)
        found += [large >= small, after <= before]
        words.append(
            f"with {n_attributes} attributes the best N_dc goes from {small:g} to {large:g} and a row from "
            f"{number(before)} to {number(after)} microseconds"
        )
    return Finding(True if all(found) else None if any(found) else False, "; ".join(words))


def _against_queries(figure: Figure) -> Finding:
    today = [row for row in figure.rows if "x" not in row]
    figure, found = Figure([row for row in figure.rows if "x" in row]), []
    for n_attributes in (4, 8):
        under = f"N_attr = {n_attributes},"
        slow = figure.seconds("IBS", under)
        fast = ratios(slow, figure.seconds(BATCH, under))
        if not fast:
            return Finding(None, "not all was measured")
        found.append(at_least(fast, OVER_IBS, f"with {n_attributes} attributes SJ-Batch is {{}} times as fast as IBS"))
        alone = ratios(slow, figure.seconds(ALONE, under))
        found.append(at_least(alone, 1, "SJ-Immediate {}"))
        first = next(iter(fast))
        grown = {case: times / fast[first] for case, times in fast.items() if case != first}
        found.append(at_least(grown, 1, "SJ-Batch's lead grows to {} times that of the fewest queries"))
    told = all_of(found)
    lead = ratios(Figure(today).seconds("IBS"), Figure(today).seconds(BATCH))
    words = f"; with a million queries {span(lead.values())} times" if lead else ""
    return Finding(told.holds, told.words + words)


def _against_predicates(figure: Figure) -> Finding:
    found = []
    for name, is_slower in (("IBS", True), (BATCH, False), (ALONE, False)):
        few, many = first_and_last(figure.seconds(name))
        grown = {"all": many / few if is_slower else few / many}
        way = "as long" if is_slower else "as fast"
        found.append(at_least(grown, 1, f"{name} is {{}} times {way} with predicates on all attributes as on one"))
    return all_of(found)


def _against_skew(figure: Figure) -> Finding:
    even, skewed = first_and_last(figure.seconds(BATCH))
    found = at_least({"100%": even / skewed}, 1, "SJ-Batch is {} times as fast with all rows in a tenth of the domain")
    for name in (ALONE, "IBS"):
        times = list(figure.seconds(name).values())
        found &= at_most({"all": max(times) / min(times)}, EVEN, f"times of {name} differ by a factor of {{}}")
    return found


def _against_windows(figure: Figure) -> Finding:
    faster = figure.values("SJ-Join, times faster than IBS-JS")
    found = at_least(faster, 1, "SJ-Join is {} times as fast as IBS-JS")
    best: dict[str, float] = {}
    for case, times in faster.items():
        window = case.rsplit(", ", 1)[0]
        best[window] = max(best.get(window, 0.0), times)
    first = next(iter(best))
    grown = {window: times / best[first] for window, times in best.items() if window != first}
    told = ", ".join(f"{number(times)} with {window}" for window, times in best.items())
    return found & at_least(grown, 1, f"up to {told}")


CLAIMS = [
    Claim(
        "sjcq-table3",
        "table 3",
        "with larger batches the best N_dc grows, from 100 to 200 with 4 attributes and from 200 to 400 with 8, and a "
        "row takes less",
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
        "on skewed rows SJ-Batch is up to 1.7 times as fast, while SJ-Immediate and IBS take as long as ever",
        _against_skew,
    ),
    Claim(
        "sjcq-fig18",
        "figure 18",
        "SJ-Join is up to 2.6, 3.9 and 6.9 times as fast as IBS-JS, with windows of 100, 1,000 and 10,000 rows",
        _against_windows,
    ),
]
