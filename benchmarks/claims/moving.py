"""Zhang et al.: "A Highly Optimized Algorithm for Continuous Intersection Join Queries over Moving Objects"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.claims.claim import Claim, Figure, Finding, all_of, at_least, at_most, number, ratios

MS, READ = "milliseconds a timestamp", "node accesses a timestamp"
BEST_BUCKETS = 2
TIMESTAMP = 100.0  # milliseconds: what the paper would have a timestamp be
MODEL_ERROR, OVERHEAD = 8.0, 6.0  # percent
OVER_PLAIN = 5  # times faster with all techniques
EVEN = 0.05  # of a difference that is none


def _buckets(figure: Figure) -> Finding:
    intervals = list(dict.fromkeys(row["contestant"] for row in figure.rows))
    best = {measure: {each: _least(figure.line(each, measure)) for each in intervals} for measure in (MS, READ)}
    n_right = sum(m == BEST_BUCKETS for m in best[MS].values())
    told = [
        f"by {words} the best m is {_list(best[measure])}" for measure, words in ((MS, "time"), (READ, "node accesses"))
    ]
    return Finding(2 * n_right > len(intervals) or (None if n_right else False), "; ".join(told))


def _list(best: dict[str, Any]) -> str:
    return ", ".join(f"{m} at {interval}" for interval, m in best.items())


def _least(line: dict[Any, float]) -> Any:
    return min(line, key=lambda x: line[x])


def _constraint(figure: Figure) -> Finding:
    return all_of(
        at_least(ratios(figure.line("NaiveJoin", measure), figure.line("TC-Join", measure)), 1, words)
        for measure, words in (
            ("milliseconds", "NaiveJoin takes {} times the time of TC-Join"),
            ("node accesses", "{} times the node accesses"),
        )
    )


def _techniques(figure: Figure) -> Finding:
    times, read = figure.line("initial join", "milliseconds"), figure.line("initial join", "node accesses")
    found = at_least({"all": times["none"] / times["all"]}, OVER_PLAIN, "all techniques make the join {} times as fast")
    change = max(abs(count / read["none"] - 1) for count in read.values())
    found &= at_most({"all": 100 * change}, 100 * EVEN, "and change node accesses by {}%")
    slow = [name for name in ("PS", "DP", "IP") if times[name] > times["none"]]
    return found & Finding(not slow or None, f"alone, {', '.join(slow)} slow it down" if slow else "each of them helps")


_PHASES = {"maintenance": "maintenance", "initial join": "an initial join"}


def _access_order(figure: Figure) -> Finding:
    found = []
    for phase, words in (("maintenance", "group updates save {}%"), ("initial join", "the access order saves {}%")):
        for measure in ("node accesses", "milliseconds"):
            line = figure.line(phase, f"{measure}, initial and a timestamp")
            saved = {"all": 100 * (1 - line["both"] / line["neither"])}
            of = "node accesses" if measure == "node accesses" else "time"
            found.append(at_least(saved, 0, f"{words} of the {of} of {_PHASES[phase]}"))
    return all_of(found)


def _rivals(figure: Figure, measure: str, names: tuple[str, ...]) -> Finding:
    mtb = figure.line("MTB-Join", measure)
    found = all_of(
        at_least(ratios(figure.line(name, measure), mtb), 1, f"{name} takes {{}} times the time of MTB-Join")
        for name in names
    )
    return Finding(found.holds, f"{found.words}; {_tell_ours(ratios(mtb, figure.line('Vedette', measure)))}")


def _keeps_up(figure: Figure) -> Finding:
    mtb = figure.line("MTB-Join", MS)
    found = at_most(mtb, TIMESTAMP, "MTB-Join takes {} milliseconds a timestamp")
    return Finding(found.holds, f"{found.words}; {_tell_ours(ratios(mtb, figure.line('Vedette', MS)))}")


def _tell_ours(times: dict[object, float]) -> str:
    return at_least(times, 0, "Vedette, which stores and lists pairs besides, is {} times as fast as that").words


def _model_error(figure: Figure) -> Finding:
    return at_most(figure.values("error, %"), MODEL_ERROR, "its error is {}%")


def _recommended(figure: Figure, kind: str) -> Finding:
    told, best, ours = (
        figure.values(f"interval {words}").get(kind)
        for words in ("that the model recommends", "with the fewest accesses", "at which ours takes least")
    )
    assert told is not None
    assert best is not None
    assert ours is not None
    read = figure.line("actual", READ)
    more = 100 * (read[told] / read[best] - 1) if told in read else 0.0
    errors = {}
    for method in ("eight-vbr", "zero-vbr", "expanding-mbr"):
        line = figure.line(method, READ)
        if line:
            errors[method] = sum(abs(line[x] / read[x] - 1) for x in read) / len(read)
    nearest = min(errors, key=lambda method: errors[method])
    if told == best:
        words = f"it recommends {number(told)}, which reads least"
    else:
        words = f"it recommends {number(told)}, which reads {number(more)}% more than {number(best)}"
    words += f"; nearest to the facts is {nearest}, {number(100 * errors[nearest])}% off"
    words += f"; ours takes least at {number(ours)}"
    return Finding(True if told == best else None if more <= 10 else False, words)


def _overhead(figure: Figure) -> Finding:
    return at_most(figure.values("overhead, %"), OVERHEAD, "watching six intervals adds {}%")


def _same(target: str, figure: str, by: str) -> Claim:
    says = f"maintenance by MTB-Join goes as in figure 29 {by}, fast enough for timestamps of 0.1 s"
    return Claim(target, figure, says, _keeps_up)


def _best_interval(target: str, figure: str, kind: str, of: str) -> Claim:
    judge: Callable[[Figure], Finding] = partial(_recommended, kind=kind)
    return Claim(target, figure, f"the interval that the cost model recommends for {of} is the best one", judge)


CLAIMS = [
    Claim("mtb-fig20", "figure 20", "two time buckets are best at most intervals", _buckets),
    Claim("mtb-fig21", "figure 21", "a time constraint makes the initial join much cheaper", _constraint),
    Claim(
        "mtb-fig22",
        "figure 22",
        "plane sweep, dimension selection and intersection check together make it about 5 times as fast, and change "
        "no node accesses",
        _techniques,
    ),
    Claim(
        "mtb-fig23",
        "figure 23",
        "group processing saves much of the node accesses and time of maintenance, and the access order about 10% of "
        "an initial join",
        _access_order,
    ),
    Claim(
        "mtb-fig24",
        "figure 24",
        "the initial join of MTB-Join is up to 4 times as fast as that of ETP-Join, and NaiveJoin is far behind",
        partial(_rivals, measure="milliseconds", names=("NaiveJoin", "ETP-Join")),
    ),
    Claim(
        "mtb-fig29",
        "figure 29",
        "maintenance by MTB-Join takes far less than by NaiveJoin and ETP-Join, at any number of objects",
        partial(_rivals, measure=MS, names=("NaiveJoin", "ETP-Join")),
    ),
    _same("mtb-fig30", "figures 30 and 34", "under every distribution and on streets"),
    _same("mtb-fig31", "figure 31", "at any speed"),
    _same("mtb-fig32", "figure 32", "with objects of any size"),
    _same("mtb-fig33", "figure 33", "at any probability of updates"),
    Claim("mtb-fig35", "figure 35", "the cost model is less than 8% off", _model_error),
    _best_interval("mtb-fig36", "figure 36", "uniform", "uniform sets"),
    _best_interval("mtb-fig37", "figure 37", "battlefield", "a battlefield"),
    _best_interval("mtb-fig38", "figure 38", "gaussian", "Gaussian sets"),
    _best_interval("mtb-fig39", "figure 39", "truck", "trucks"),
    _best_interval("mtb-fig40", "figure 40", "bus", "buses"),
    Claim("mtb-fig41", "figure 41", "watching candidate intervals costs less than 6% of the join", _overhead),
]
