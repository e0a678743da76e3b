"""Zhang et al.: "A Highly Optimized Algorithm for Continuous Intersection Join Queries over Moving Objects"."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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
)

MS, READ = "milliseconds a timestamp", "node accesses a timestamp"
BEST_BUCKETS = 2
TIMESTAMP = 100.0  # milliseconds of a timestamp in the paper
MODEL_ERROR, OVERHEAD = 8.0, 6.0  # percent
OVER_PLAIN = 5  # times faster with all techniques
FAR = 10  # times: in the paper's figures, "far", "much" and "up to 10 times" mean an order of magnitude
OVER_ETP = 4  # times faster, at most
ON_BATTLEFIELD = 90.0  # percent of the time saved there
MUCH_SAVED, SOME_SAVED = 50.0, 5.0  # percent: "a significant decrease", and "about 10"
EVEN = 0.05  # up to this, a difference counts as none
RIVALS = ("NaiveJoin", "ETP-Join")


def _buckets(figure: Figure) -> Finding:
    intervals = list(dict.fromkeys(row["contestant"] for row in figure.rows))
    found = []
    for measure, words in ((MS, "time"), (READ, "node accesses")):
        best = [_least(figure.line(each, measure)) for each in intervals]
        n_right = best.count(BEST_BUCKETS)
        finding = f"by {words} two buckets are best for {n_right or 'none'} of {len(intervals)} intervals"
        others = sorted(set(best) - {BEST_BUCKETS})
        rest = f", for the others {' or '.join(map(str, others))}" if others else ""
        found.append(Finding(2 * n_right > len(intervals), finding + rest))
    return all_of(found)


def _least(line: dict[Any, float]) -> Any:
    return min(line, key=lambda x: line[x])


def _constraint(figure: Figure) -> Finding:
    found = []
    for measure, words in (("milliseconds", "the time"), ("node accesses", "the node accesses")):
        times = ratios(figure.line("NaiveJoin", measure), figure.line("TC-Join", measure))
        found.append(_up_to(times, FAR, f"{_up_to_size(times)} NaiveJoin takes {{}} times {words} of TC-Join"))
    return all_of(found)


def _up_to(times: dict[Any, float], most: float, words: str) -> Finding:
    """All values are above 1, and one reaches `most`."""
    found = above(times, 1, words)
    if found.holds and max(times.values()) < most:
        return Finding(None, f"{found.words}, nowhere {number(most)}")
    return found


def _up_to_size(line: dict[Any, float]) -> str:
    return f"with up to {max(line, default=0):,} objects"


def _techniques(figure: Figure) -> Finding:
    times, read = figure.line("initial join", "milliseconds"), figure.line("initial join", "node accesses")
    found = at_least({"all": times["none"] / times["all"]}, OVER_PLAIN, "all techniques make the join {} times as fast")
    change = max(abs(count / read["none"] - 1) for count in read.values())
    found &= at_most({"all": 100 * change}, 100 * EVEN, "they change node accesses by {}%")
    slow = [name for name in ("PS", "DP", "IP") if times[name] > times["none"]]
    return found & Finding(not slow or None, f"alone, {', '.join(slow)} slow it down" if slow else "each of them helps")


_PHASES = {"maintenance": "maintenance", "initial join": "an initial join"}


def _access_order(figure: Figure) -> Finding:
    found = []
    for phase, bound, words in (
        ("maintenance", MUCH_SAVED, "group updates save {}%"),
        ("initial join", SOME_SAVED, "the access order saves {}%"),
    ):
        for measure in ("node accesses", "milliseconds"):
            line = figure.line(phase, f"{measure}, initial and a timestamp")
            saved = {"all": 100 * (1 - line["both"] / line["neither"])}
            of = "node accesses" if measure == "node accesses" else "time"
            found.append(at_least(saved, bound, f"{words} of the {of} of {_PHASES[phase]}"))
    return all_of(found)


def _initial_by_size(figure: Figure) -> Finding:
    mtb = figure.line("MTB-Join", "milliseconds")
    naive, etp = (ratios(figure.line(name, "milliseconds"), mtb) for name in RIVALS)
    found = at_least(naive, FAR, f"{_up_to_size(naive)} NaiveJoin takes {{}} times the time of MTB-Join")
    found &= _grows(naive)
    found &= _up_to(etp, OVER_ETP, f"{_up_to_size(etp)} ETP-Join takes {{}} times the time of MTB-Join")
    return _with_ours(figure, found, "milliseconds", _up_to_size(mtb))


def _maintenance_by_size(figure: Figure) -> Finding:
    found = []
    for name in RIVALS:
        times, read = (ratios(figure.line(name, measure), figure.line("MTB-Join", measure)) for measure in (MS, READ))
        found.append(at_least(times, FAR, f"{_up_to_size(times)} {name} takes {{}} times the time of MTB-Join"))
        if name == "NaiveJoin":  # the other runs on few objects only
            found.append(_grows(times))
        found.append(above(read, 1, f"{name} reads {{}} times the nodes"))
    return _with_ours(figure, all_of(found), MS, _up_to_size(figure.line("MTB-Join", MS)))


def _grows(times: dict[Any, float]) -> Finding:
    if len(times) < 2:
        return Finding(None, "whether it grows with the sets was not measured")
    few, many = first_and_last(times)
    return Finding(many > few, f"the lead over NaiveJoin {'grows' if many > few else 'does not grow'} with objects")


def _maintenance(figure: Figure) -> Finding:
    """Each rival with the most objects that it ran on, and whether MTB-Join keeps up with the timestamps then."""
    found = [_compare_with(figure, name, MS, FAR) for name in RIVALS]
    n = _most_objects(figure, "MTB-Join")
    took = f"with {n:,} objects MTB-Join takes {{}} milliseconds a timestamp"
    found.append(at_most(figure.line("MTB-Join", _of(MS, n)), TIMESTAMP, took))
    return _with_ours(figure, all_of(found), _of(MS, n))


def _initial(figure: Figure, rivals: tuple[str, ...] = ("ETP-Join",)) -> Finding:
    found = all_of(_compare_with(figure, name, "milliseconds", 1) for name in rivals)
    return _with_ours(figure, found, _of("milliseconds", _most_objects(figure, "MTB-Join")))


def _initial_by_distribution(figure: Figure) -> Finding:
    n = _most_objects(figure, "ETP-Join")
    time, read = (
        ratios(figure.line("MTB-Join", _of(measure, n)), figure.line("ETP-Join", _of(measure, n)))
        for measure in ("milliseconds", "node accesses")
    )
    saved = {kind: 100 * (1 - each) for kind, each in time.items() if kind == "battlefield"}
    found = _compare_with(figure, "ETP-Join", "milliseconds", 1)
    found &= at_least(saved, ON_BATTLEFIELD, "on the battlefield MTB-Join saves {}% of the time")
    read = {kind: each for kind, each in read.items() if kind == "battlefield"}
    found &= above(read, 1, "on the battlefield MTB-Join reads {} times the nodes of ETP-Join")
    return _with_ours(figure, found, _of("milliseconds", n))


def _compare_with(figure: Figure, name: str, measure: str, bound: float) -> Finding:
    """The time of a rival divided by that of MTB-Join, with the most objects that the rival ran on."""
    n = _most_objects(figure, name)
    times = ratios(figure.line(name, _of(measure, n)), figure.line("MTB-Join", _of(measure, n)))
    return at_least(times, bound, f"with {n:,} objects {name} takes {{}} times the time of MTB-Join")


def _most_objects(figure: Figure, name: str) -> int:
    return max(
        (row["n_objects"] for row in figure.rows if row.get("contestant") == name and "n_objects" in row), default=0
    )


def _of(measure: str, n_objects: int) -> str:
    return f"{measure}, {n_objects:,} objects a set"


def _with_ours(figure: Figure, found: Finding, measure: str, where: str = "") -> Finding:
    """The finding, and the speed of Vedette, which is not part of the paper's claim."""
    times = ratios(figure.line("MTB-Join", measure), figure.line("Vedette", measure))
    ours = at_least(times, 0, "Vedette, which also lists pairs, is {} times as fast as MTB-Join")
    return Finding(found.holds, f"{found.words}; {where + ' ' if where else ''}{ours.words}")


def _model_error(figure: Figure) -> Finding:
    return at_most(figure.values("error, %"), MODEL_ERROR, "its error is {}%")


def _recommended(figure: Figure, kind: str) -> Finding:
    measure = "interval that the model recommends"
    suffixes = [row["measure"].removeprefix(measure) for row in figure.rows if row["measure"].startswith(measure)]
    found = all_of(_recommended_at(figure, kind, suffix) for suffix in suffixes)
    ours = figure.values("interval at which ours takes least")[kind]
    return Finding(found.holds, f"{found.words}; ours takes least at {number(ours)}")


def _recommended_at(figure: Figure, kind: str, suffix: str) -> Finding:
    """The model's prediction at one interval: the first one, or the one that the suffix names."""
    recommended = figure.values(f"interval that the model recommends{suffix}")[kind]
    best = figure.values("interval with the fewest accesses")[kind]
    read = figure.line("actual", READ + suffix)
    more = 100 * (read[recommended] / read[best] - 1) if recommended in read else 0.0
    errors = {}
    for method in ("eight-vbr", "zero-vbr", "expanding-mbr"):
        line = figure.line(method, READ + suffix)
        if line:
            errors[method] = sum(abs(line[x] / read[x] - 1) for x in read) / len(read)
    nearest = min(errors, key=lambda method: errors[method])
    words = f"{suffix.removeprefix(', ')}, it" if suffix else "it"
    if recommended == best:
        words += f" recommends {number(recommended)}, which reads least"
    else:
        words += f" recommends {number(recommended)}, which reads {number(more)}% more than {number(best)}"
    words += f"; the closest prediction is {nearest}, with an error of {number(100 * errors[nearest])}%"
    return Finding(True if recommended == best else None if more <= 10 else False, words)


def _overhead(figure: Figure) -> Finding:
    return all_of(
        at_most(figure.values("overhead, %", axis), OVERHEAD, f"observing six intervals adds {{}}% for {words}")
        for axis, words in (("objects a set", "any number of objects"), ("longest update interval", "any interval"))
    )


def _ahead(target: str, figure: str, by: str) -> Claim:
    return Claim(target, figure, f"the initial join of MTB-Join is faster than that of ETP-Join {by}", _initial)


def _same(target: str, figure: str, by: str) -> Claim:
    says = f"maintenance by MTB-Join takes far less time than by NaiveJoin and ETP-Join {by}, and at most 0.1 s"
    return Claim(target, figure, says, _maintenance)


def _best_interval(target: str, figure: str, kind: str, of: str) -> Claim:
    judge: Callable[[Figure], Finding] = partial(_recommended, kind=kind)
    return Claim(target, figure, f"the interval that the cost model recommends for {of} is the best one", judge)


CLAIMS = [
    Claim("mtb-fig20", "figure 20", "two time buckets are best at most intervals", _buckets),
    Claim("mtb-fig21", "figure 21", "a time constraint makes the initial join up to 10 times cheaper", _constraint),
    Claim(
        "mtb-fig22",
        "figure 22",
        "plane sweep, dimension selection and intersection check together make it about 5 times as fast, and do not "
        "change node accesses",
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
        "the initial join of MTB-Join is up to 4 times as fast as that of ETP-Join, and NaiveJoin is far behind, "
        "increasingly with more objects",
        _initial_by_size,
    ),
    Claim(
        "mtb-fig25",
        "figure 25",
        "the initial join of MTB-Join is faster than that of ETP-Join under every distribution; on the battlefield it "
        "saves 90% of the time, though ETP-Join reads fewer nodes",
        _initial_by_distribution,
    ),
    _ahead("mtb-fig26", "figure 26", "at any speed"),
    _ahead("mtb-fig27", "figure 27", "with objects of any size"),
    Claim(
        "mtb-fig28",
        "figure 28",
        "the initial join of MTB-Join is faster than those of NaiveJoin and ETP-Join on streets",
        partial(_initial, rivals=RIVALS),
    ),
    Claim(
        "mtb-fig29",
        "figure 29",
        "maintenance by MTB-Join takes far less time and reads fewer nodes than by ETP-Join and by NaiveJoin, "
        "increasingly with more objects",
        _maintenance_by_size,
    ),
    _same("mtb-fig30", "figures 30 and 34", "under every distribution and on streets"),
    _same("mtb-fig31", "figure 31", "at any speed"),
    _same("mtb-fig32", "figure 32", "with objects of any size"),
    _same("mtb-fig33", "figure 33", "at any probability of updates"),
    Claim("mtb-fig35", "figure 35", "the error of the cost model is below 8%", _model_error),
    _best_interval("mtb-fig36", "figure 36", "uniform", "uniform sets"),
    _best_interval("mtb-fig37", "figure 37", "battlefield", "a battlefield"),
    _best_interval("mtb-fig38", "figure 38", "gaussian", "Gaussian sets"),
    _best_interval("mtb-fig39", "figure 39", "truck", "trucks"),
    _best_interval("mtb-fig40", "figure 40", "bus", "buses"),
    Claim("mtb-fig41", "figure 41", "observing candidate intervals costs less than 6% of the join", _overhead),
]
