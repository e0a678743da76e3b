"""Agarwal, Xie, Yang and Yu: "Monitoring Continuous Band-Join Queries over Dynamic Data"."""

from __future__ import annotations

from benchmarks.claims.claim import Claim, Figure, Finding, above, at_least, at_most, first_and_last, number, ratios

LOOK_UP, MB = "microseconds a look-up of pairs", "MB"
SCAN, ALL_DIFFERENCES = "scan", "tree of differences (Lemma 1)"
STABBING, MIXED, OURS = "stabbing set (Lemma 5)", "mixed (Theorem 1)", "Vedette's stabbing groups"
LITTLE = 2  # up to this factor, a size does not grow with n, and a time at most with a logarithm
MUCH = 10  # from this factor on, a size is of the order of m times n and not of m tau
WITH_TAU = 10  # from this factor on, with hundreds of times the tau, a size grows with tau
TAU, AT_ONE_TAU = "tau, stabbing points", "n, bands, at one tau"  # what band-tau is drawn against


def _growth(figure: Figure, name: str, measure: str, x_name: str | None = None) -> float:
    first, last = first_and_last(figure.line(name, measure, x_name))
    return last / first


def _times(figure: Figure, x_name: str | None = None) -> float:
    """The last x divided by the first."""
    xs = list(figure.line(SCAN, MB, x_name))
    return float(xs[-1] / xs[0])


def _against_tau(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    found = at_least(
        {"all": _growth(figure, STABBING, MB, TAU)},
        WITH_TAU,
        f"with {number(_times(figure, TAU))} times the tau the stabbing set is {{}} times as large",
    )
    sizes = {name: figure.line(name, MB, TAU) for name in (STABBING, ALL_DIFFERENCES)}
    least = next(iter(sizes[STABBING]))
    found &= above(
        {least: sizes[ALL_DIFFERENCES][least] / sizes[STABBING][least]},
        1,
        "at the smallest tau the tree of Lemma 1 is {} times as large",
    )
    slower = {"all": _growth(figure, STABBING, LOOK_UP, TAU)}
    found &= at_most(slower, LITTLE, "at the largest tau a lookup takes {} times as long")
    if figure.line(SCAN, MB, AT_ONE_TAU):
        words = f"with {number(_times(figure, AT_ONE_TAU))} times the bands at the same tau it takes {{}} times as long"
        found &= at_most({"all": _growth(figure, STABBING, LOOK_UP, AT_ONE_TAU)}, LITTLE, words)
    else:
        found &= Finding(None, "more bands at the same tau were not measured")
    slow = figure.line(SCAN, LOOK_UP, TAU)
    faster = {tau: slow[tau] / taken for tau, taken in figure.line(STABBING, LOOK_UP, TAU).items()}
    return _and_today(found & above(faster, 1, "a lookup is {} times as fast as a scan"), today)


def _and_today(found: Finding, today: Figure) -> Finding:
    """The same, and a lookup compared with the scan, which takes O(m + n), for the most values and bands."""
    slow, fast = (today.values(f"{LOOK_UP}, {name}") for name in (SCAN, STABBING))
    faster = ratios(slow, fast)
    return found & above(faster, 1, "with a million values or bands {} times as fast as a scan") if faster else found


def _against_bands(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    times = number(_times(figure))
    found = at_most(
        {"all": _growth(figure, STABBING, MB)},
        LITTLE,
        f"with {times} times the bands the stabbing set is {{}} times as large",
    )
    for name, words in ((STABBING, "its lookup takes {} times as long"), (OURS, "a lookup in our groups {} times")):
        found &= at_most({"all": _growth(figure, name, LOOK_UP)}, LITTLE, words)
    found &= above({"all": _growth(figure, SCAN, LOOK_UP)}, 1, "a scan {} times")
    return _and_today(found, today)


def _against_values(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    times = _times(figure)
    found = at_most(
        {"all": _growth(figure, STABBING, LOOK_UP)},
        LITTLE,
        f"with {number(times)} times the values a lookup in the stabbing set takes {{}} times as long",
    )
    found &= at_most({"all": _growth(figure, STABBING, MB)}, 1.5 * times, "its memory is {} times as large")
    mixed = {"all": _growth(figure, MIXED, MB)}
    found &= at_most(mixed, 1.5 * times, "that of the mixed structure {} times")
    # A structure of size m times n also grows with m: its size shows it.
    larger = ratios(figure.line(ALL_DIFFERENCES, MB), figure.line(STABBING, MB))
    words = "the tree of Lemma 1, of m times n intervals, takes {} times its memory"
    return _and_today(found & at_least(larger, MUCH, words), today)


def _against_output(figure: Figure) -> Finding:
    today, figure = figure.today(), figure.drawn()
    few, many = first_and_last(figure.line(STABBING, LOOK_UP))
    times = _times(figure)
    found = at_most(
        {"all": many / few},
        times,
        f"with {number(times)} times the pairs a lookup in the stabbing set takes {{}} times as long",
    )
    slow = figure.line(SCAN, LOOK_UP)
    faster = {pairs: slow[pairs] / taken for pairs, taken in figure.line(STABBING, LOOK_UP).items()}
    return _and_today(found & above(faster, 1, "a lookup is {} times as fast as a scan"), today)


CLAIMS = [
    Claim(
        "band-tau",
        "lemmas 1 and 5",
        "the structure over stabbing points takes O(m tau + n) memory and O(log(m tau) + k) time: little if bands are "
        "clustered around few points, for any number of bands",
        _against_tau,
    ),
    Claim("band-bands", "lemma 5", "size and time depend on tau, not on the number of bands", _against_bands),
    Claim(
        "band-values",
        "lemma 5, theorem 1",
        "size grows with m tau, not with m times n, and time only with its logarithm",
        _against_values,
    ),
    Claim(
        "band-output", "lemma 5", "besides the logarithm, time depends on the number of pairs found", _against_output
    ),
]
