"""Agarwal, Xie, Yang and Yu: "Monitoring Continuous Band-Join Queries over Dynamic Data"."""

from __future__ import annotations

from benchmarks.claims.claim import Claim, Figure, Finding, at_least, at_most, first_and_last, number

LOOK_UP, MB = "microseconds a look-up of pairs", "MB"
SCAN, ALL_DIFFERENCES = "scan", "tree of differences (Lemma 1)"
STABBING, MIXED, OURS = "stabbing set (Lemma 5)", "mixed (Theorem 1)", "Vedette's stabbing groups"
LITTLE = 2  # times as much is not "with n"


def _growth(figure: Figure, name: str, measure: str) -> float:
    first, last = first_and_last(figure.line(name, measure))
    return last / first


def _times(figure: Figure) -> float:
    """How many times the first x the last one is."""
    xs = list(figure.line(SCAN, MB))
    return float(xs[-1] / xs[0])


def _against_tau(figure: Figure) -> Finding:
    times = _times(figure)
    found = at_least(
        {"all": _growth(figure, STABBING, MB)},
        2,
        f"with {number(times)} times the tau the stabbing set is {{}} times as large",
    )
    lines = {name: figure.line(name, measure) for name, measure in ((STABBING, MB), (ALL_DIFFERENCES, MB))}
    least = next(iter(lines[STABBING]))
    found &= at_least(
        {least: lines[ALL_DIFFERENCES][least] / lines[STABBING][least]},
        1,
        "at the least tau the tree of Lemma 1 is {} times as large",
    )
    slow = figure.line(SCAN, LOOK_UP)
    faster = {tau: slow[tau] / taken for tau, taken in figure.line(STABBING, LOOK_UP).items()}
    return found & at_least(faster, 1, "a look-up is {} times as fast as the scan")


def _against_bands(figure: Figure) -> Finding:
    times = number(_times(figure))
    found = at_most(
        {"all": _growth(figure, STABBING, MB)},
        LITTLE,
        f"with {times} times the bands the stabbing set is {{}} times as large",
    )
    for name, words in ((STABBING, "its look-up takes {} times as long"), (OURS, "that of our groups {} times")):
        found &= at_most({"all": _growth(figure, name, LOOK_UP)}, LITTLE, words)
    return found & at_least({"all": _growth(figure, SCAN, LOOK_UP)}, 1, "that of the scan {} times")


def _against_values(figure: Figure) -> Finding:
    times = _times(figure)
    found = at_most(
        {"all": _growth(figure, STABBING, LOOK_UP)},
        LITTLE,
        f"with {number(times)} times the values a look-up of the stabbing set takes {{}} times as long",
    )
    found &= at_most({"all": _growth(figure, STABBING, MB)}, 1.5 * times, "its memory is {} times as large")
    mixed = {"all": _growth(figure, MIXED, MB)}
    return found & at_most(mixed, 1.5 * times, "that of the mixed structure {} times")


def _against_output(figure: Figure) -> Finding:
    few, many = first_and_last(figure.line(STABBING, LOOK_UP))
    times = _times(figure)
    found = at_most(
        {"all": many / few},
        times,
        f"with {number(times)} times the pairs a look-up of the stabbing set takes {{}} times as long",
    )
    slow = figure.line(SCAN, LOOK_UP)
    faster = {pairs: slow[pairs] / taken for pairs, taken in figure.line(STABBING, LOOK_UP).items()}
    return found & at_least(faster, 1, "it is {} times as fast as the scan")


CLAIMS = [
    Claim(
        "band-tau",
        "lemmas 1 and 5",
        "the structure over stabbing points takes O(m tau + n) memory and O(log(m tau) + k) time: little where bands "
        "gather around few points",
        _against_tau,
    ),
    Claim("band-bands", "lemma 5", "size and time follow tau, and not the number of bands", _against_bands),
    Claim(
        "band-values",
        "lemma 5, theorem 1",
        "size grows with m tau, not with m times n, and time only with its logarithm",
        _against_values,
    ),
    Claim("band-output", "lemma 5", "beyond the logarithm, time follows the pairs that are found", _against_output),
]
