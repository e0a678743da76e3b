"""The sentences about the papers' claims agree with their results."""

from __future__ import annotations

import re

import pytest

from benchmarks import results
from benchmarks.claims import CLAIMS, judge
from benchmarks.claims.claim import Finding, all_of, at_least, at_most, number, span

MOST_WORDS = 80  # of a verdict, besides numbers: a lead and a few details


def time(target, case, contestant, seconds, **more):
    return {"kind": "time", "target": target, "case": case, "contestant": contestant, "seconds": seconds} | more


def value(target, case, measure, number, **more):
    return {"kind": "value", "target": target, "case": case, "measure": measure, "value": number} | more


def test_what_was_not_measured_is_not_judged():
    assert judge("vcr-fig13", [time("vcr-fig12", "W = 20", "VCR", 1.0)]) is None


def test_a_bound_that_all_values_reach_holds_and_shows_the_range():
    assert at_least({"a": 3.0, "b": 12.34}, 3, "{} times") == Finding(True, "3 to 12 times")
    assert at_most({"a": 0.5}, 1, "{} times") == Finding(True, "0.5 times")


def test_a_bound_that_some_values_miss_holds_in_part_and_names_them():
    found = at_least({"objects a set: 1,000": 0.5, "objects a set: 10,000": 7.0}, 1, "{} times as fast")

    assert found == Finding(None, "0.5 to 7 times as fast, but not at 1,000 (0.5)")


def test_where_many_miss_a_bound_they_are_counted_and_the_furthest_is_named():
    measured = {1: 4.0, 2: 0.5, 3: 0.25, 4: 0.75, 5: 0.5, 6: 4.0, 7: 4.0, 8: 4.0}

    found = at_least(measured, 1, "{} times as fast")
    assert found == Finding(None, "0.25 to 4 times as fast, but not at 4 of 8, 3 (0.25) the furthest")
    found = at_most({key: 1 / value for key, value in measured.items()}, 1, "{} times the time")
    assert found == Finding(None, "0.25 to 4 times the time, but not at 4 of 8, 3 (4) the furthest")


def test_a_bound_that_most_miss_does_not_hold():
    assert at_least({1: 4.0, 2: 0.5, 3: 0.25}, 1, "{} times") == Finding(False, "0.25 to 4 times, missed at 2 of 3")
    assert at_least({1: 4.0, 2: 0.5}, 1, "{} times").holds is None


def test_a_bound_that_all_miss_does_not_hold():
    assert str(at_most({"a": 2.0, "b": 3.0}, 1, "{} times")) == "does not hold: 2 to 3 times"


def test_parts_that_support_a_verdict_come_first():
    yes, part, no = Finding(True, "a"), Finding(None, "b"), Finding(False, "c")

    assert str(all_of([yes, yes])) == "holds: a; a"
    assert str(all_of([no, part, yes])) == "holds in part: a; in part: b; against it: c"
    assert str(no & yes & no) == "does not hold: c; c; for it: a"
    assert str(all_of([part, no])) == "does not hold: c; in part: b"
    assert str(all_of([no, no])) == "does not hold: c; c"


@pytest.mark.parametrize("parts", [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")])
def test_parts_have_equal_weight_in_any_order(parts):
    holds = {"a": True, "b": False, "c": None}
    one, two, three = (Finding(holds[each], each) for each in parts)

    assert (one & two & three).holds is (one & (two & three)).holds is None
    assert (one & two & three).words == "a; in part: c; against it: b"


def test_verdicts_are_short_enough_to_be_read():
    rows = results.read(quick=False)
    words = {target: len(re.findall(r"\b[A-Za-z]\S*", str(judge(target, rows)))) for target in CLAIMS}

    assert {target: n for target, n in words.items() if n > MOST_WORDS} == {}


@pytest.mark.parametrize(
    ("given", "reported"), [(1234.5, "1,234"), (12.34, "12"), (1.26, "1.3"), (0.0123, "0.012"), (4, "4")]
)
def test_numbers_have_two_digits(given, reported):
    assert number(given) == reported


def test_a_range_of_one_number_is_that_number():
    assert span([1.01, 1.02]) == "1"
    assert span([2.0, 1.0]) == "1 to 2"


def intervals(recommended):
    rows = [
        value("mtb-fig36", "uniform", "interval that the model recommends", recommended),
        value("mtb-fig36", "uniform", "interval with the fewest accesses", 90),
        value("mtb-fig36", "uniform", "interval at which ours takes least", 120),
    ]
    for interval, read in ((60, 120.0), (90, 100.0)):
        for name, reported in (("actual", read), ("eight-vbr", 1.1 * read), ("zero-vbr", 2 * read)):
            point = {"x": interval, "x_name": "longest update interval", "contestant": name}
            y_name = "node accesses a timestamp"
            case = f"uniform, interval {interval}"
            rows.append(value("mtb-fig36", case, f"{y_name}, {name}", reported, y_name=y_name, **point))
    return rows


def test_an_interval_that_is_recommended_is_held_against_the_best():
    assert str(judge("mtb-fig36", intervals(90))) == (
        "holds: it recommends 90, which reads least; the closest prediction is eight-vbr, with an error of 10%; "
        "ours takes least at 120"
    )
    assert judge("mtb-fig36", intervals(60)).holds is False


def test_every_claim_is_a_sentence_without_its_end():
    for claim in CLAIMS.values():
        assert claim.says[0].islower() or claim.says.startswith(("LCI", "VCR", "SJ", "BMQ"))
        assert not claim.says.endswith(".")
