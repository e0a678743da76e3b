"""Sentences on the papers' claims say what the rows they are told from say."""

from __future__ import annotations

import pytest

from benchmarks.claims import CLAIMS, judge
from benchmarks.claims.claim import Finding, all_of, at_least, at_most, number, span


def time(target, case, contestant, seconds, **more):
    return {"kind": "time", "target": target, "case": case, "contestant": contestant, "seconds": seconds} | more


def value(target, case, measure, number, **more):
    return {"kind": "value", "target": target, "case": case, "measure": measure, "value": number} | more


def test_what_was_not_measured_is_not_judged():
    assert judge("vcr-fig13", [time("vcr-fig12", "W = 20", "VCR", 1.0)]) is None


def test_a_bound_that_all_reach_holds_and_tells_the_range():
    assert at_least({"a": 3.0, "b": 12.34}, 3, "{} times") == Finding(True, "3 to 12 times")
    assert at_most({"a": 0.5}, 1, "{} times") == Finding(True, "0.5 times")


def test_a_bound_that_some_miss_holds_in_part_and_tells_where_not():
    found = at_least({"objects a set: 1,000": 0.5, "objects a set: 10,000": 7.0}, 1, "{} times as fast")

    assert found == Finding(None, "0.5 to 7 times as fast, but not at 1,000 (0.5)")


def test_a_bound_that_all_miss_does_not_hold():
    assert str(at_most({"a": 2.0, "b": 3.0}, 1, "{} times")) == "does not hold: 2 to 3 times"


def test_claims_of_parts_hold_where_all_parts_do():
    yes, no = Finding(True, "a"), Finding(False, "b")

    assert all_of([yes, yes]) == Finding(True, "a; a")
    assert all_of([yes, no, yes]) == Finding(None, "a; b; a")
    assert all_of([no, no]) == Finding(False, "b; b")


@pytest.mark.parametrize(
    ("given", "told"), [(1234.5, "1,234"), (12.34, "12"), (1.26, "1.3"), (0.0123, "0.012"), (4, "4")]
)
def test_numbers_have_two_digits(given, told):
    assert number(given) == told


def test_a_range_of_one_number_is_that_number():
    assert span([1.01, 1.02]) == "1"
    assert span([2.0, 1.0]) == "1 to 2"


def rectangles(over_hot):
    rows = []
    for placed, over in (("uniform", 5.0), ("90-10", over_hot)):
        for n in (8, 16):
            case = f"{placed}, {n},000 queries"
            rows += [time("vcr-fig13", case, "VCR", 1.0), time("vcr-fig13", case, "R-tree", over)]
            rows += [value("vcr-fig13", case, "MB, VCR", 2.0), value("vcr-fig13", case, "MB, R-tree", 1.0)]
    return rows


def test_vcr_holds_with_three_times_an_r_tree():
    assert str(judge("vcr-fig13", rectangles(4.0))) == (
        "holds: an R-tree takes 4 times the time of VCR on 90-10 rectangles; an R-tree takes 5 times the time of VCR "
        "on uniform rectangles; VCR takes 2 times the memory of an R-tree"
    )
    assert judge("vcr-fig13", rectangles(2.0)).holds is None


def conjunctions(lead):
    rows = []
    for n_attributes in (4, 8):
        for n, times in lead.items():
            case = f"N_attr = {n_attributes}, N_query = {n:,}"
            point = {"x": n} if n <= 100_000 else {}
            for name, seconds in (("SJ-Batch", 1.0), ("SJ-Immediate", times / 2), ("IBS", times)):
                rows.append(time("sjcq-fig15", case, name, seconds, **point))
    return rows


def test_the_lead_of_sj_batch_must_be_large_and_grow():
    assert judge("sjcq-fig15", conjunctions({10_000: 16.0, 100_000: 30.0, 1_000_000: 12.0})).holds is True
    assert judge("sjcq-fig15", conjunctions({10_000: 14.0, 100_000: 30.0, 1_000_000: 12.0})).holds is None
    assert judge("sjcq-fig15", conjunctions({10_000: 30.0, 100_000: 16.0, 1_000_000: 12.0})).holds is None


def steps(at_width):
    rows = []
    for percent, over in ((0.01, 10.0), (0.05, 2.0), (0.1, at_width)):
        case = f"FL = {percent:g}%"
        rows += [time("bmq-fig8", case, "BMQ", 1.0), time("bmq-fig8", case, "DiffRMQ over CEI", over)]
        rows += [time("bmq-fig8", case, "DiffRMQ over IS-list", 2 * over)]
    return rows


def test_bmq_is_judged_by_the_fastest_diff_rmq_and_at_the_width_apart():
    assert str(judge("bmq-fig8", steps(0.9))) == (
        "holds: BMQ is 2 to 10 times as fast as the fastest DiffRMQ where FL < W; at FL = W, as the paper finds, it is "
        "0.9 times as fast"
    )
    assert judge("bmq-fig8", steps(1.5)).holds is None


def structures(growth):
    rows = []
    for n, times in ((250, 1.0), (2_000, growth)):
        names = ("scan", "stabbing set (Lemma 5)", "Vedette's stabbing groups", "mixed (Theorem 1)")
        for name in names:
            for measure in ("MB", "microseconds a look-up of pairs"):
                point = {"x": n, "x_name": "n, bands", "y_name": measure, "contestant": name}
                taken = n if name == "scan" else times
                rows.append(value("band-bands", f"n = {n:,}", f"{measure}, {name}", taken, **point))
    return rows


def test_the_stabbing_set_must_not_follow_the_number_of_bands():
    assert judge("band-bands", structures(1.2)).holds is True
    assert judge("band-bands", structures(8.0)).holds is None


def intervals(recommended):
    rows = [
        value("mtb-fig36", "uniform", "interval that the model recommends", recommended),
        value("mtb-fig36", "uniform", "interval with the fewest accesses", 90),
        value("mtb-fig36", "uniform", "interval at which ours takes least", 120),
    ]
    for interval, read in ((60, 120.0), (90, 100.0)):
        for name, told in (("actual", read), ("eight-vbr", 1.1 * read), ("zero-vbr", 2 * read)):
            point = {"x": interval, "x_name": "longest update interval", "contestant": name}
            y_name = "node accesses a timestamp"
            case = f"uniform, interval {interval}"
            rows.append(value("mtb-fig36", case, f"{y_name}, {name}", told, y_name=y_name, **point))
    return rows


def test_an_interval_that_is_recommended_is_held_against_the_best():
    assert str(judge("mtb-fig36", intervals(90))) == (
        "holds: it recommends 90, which reads least; nearest to the facts is eight-vbr, 10% off; "
        "ours takes least at 120"
    )
    assert judge("mtb-fig36", intervals(60)).holds is False


def test_every_claim_is_a_sentence_without_its_end():
    for claim in CLAIMS.values():
        assert claim.says[0].islower() or claim.says.startswith(("LCI", "VCR", "SJ", "BMQ"))
        assert not claim.says.endswith(".")
