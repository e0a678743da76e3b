"""The pages show every result and when it was measured, and a run says beforehand how long it will take."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import report, results
from benchmarks.__main__ import check_commit, describe_left, describe_length
from benchmarks.harness import UnknownExperimentError, all_experiments, find_experiments
from benchmarks.plots import FIGURES, _panels, draw_plots
from benchmarks.targets import EVERY_TARGET, PAPERS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("key", [target.key for target in EVERY_TARGET])
def test_an_experiment_answers_every_target_and_runs_by_its_key(key):
    (name,) = find_experiments([key])

    assert key in all_experiments()[name].targets


def test_figures_of_one_experiment_run_it_once():
    assert find_experiments(["mtb-fig36", "mtb-fig40", "mtb-intervals", "churn"]) == ["mtb-intervals", "churn"]
    assert find_experiments([]) == list(all_experiments())


def test_an_unknown_experiment_is_refused_with_the_known_ones():
    with pytest.raises(
        UnknownExperimentError, match=r"unknown experiment 'fig13'; experiments are: .*vcr-fig13.*fig36"
    ):
        find_experiments(["churn", "fig13"])


def test_the_pages_show_the_stored_results():
    stale = [
        path.name for path, text in report.write_pages(results.read(quick=False)).items() if text != path.read_text()
    ]

    assert not stale, "run: python -m benchmarks report"


def test_every_target_has_a_page_with_its_bound_and_every_page_a_target():
    keys = {target.key for target in EVERY_TARGET}

    assert {path.stem for path in report.PAGES.glob("*.md")} == keys
    for target in EVERY_TARGET:
        page = (report.PAGES / f"{target.key}.md").read_text()
        assert page.startswith("# ")
        assert f"Target: {target.reach}." in page or not target.reach


def test_the_summary_links_every_page():
    summary = report.SUMMARY.read_text() + report.PAPERS_PAGE.read_text()

    assert [target.key for target in EVERY_TARGET if f"(benchmarks/{target.key}.md)" not in summary] == []


def measured(target, commit, date, **more):
    row = {
        "kind": "verdict",
        "target": target,
        "case": "c",
        "measure": "x",
        "value": 1.0,
        "bound": 2.0,
        "sense": "at most",
    }
    machine = {"processor": "p", "cores": 2, "memory_gib": 4, "system": "s", "python": "3", "packages": {}}
    return row | {"met": True, "commit": commit, "date": date, "machine": machine} | more


def test_the_summary_has_the_date_and_a_page_also_the_commit_of_its_results():
    rows = [measured("churn", "a1", "2026-01-01"), measured("churn", "b2", "2026-01-03")]
    rows.append(measured("memory", "c3", "2026-01-02"))
    target = {target.key: target for target in EVERY_TARGET}

    summary = report.write_summary(rows)
    assert "| 1 x | yes | 2026-01-03 |" in summary["summary"]
    assert "| 1 x | yes | 2026-01-02 |" in summary["summary"]
    assert summary["machine"] == "Measured from 2026-01-01 to 2026-01-03 on 2 cores of p, 4 GiB, s, Python 3; ."
    page = report._section(target["memory"], rows)
    assert "Measured on 2026-01-02 at commit `c3` on 2 cores of p" in page


def test_every_figure_of_a_paper_but_the_table_is_drawn():
    assert {target.key for target in PAPERS} - set(FIGURES) == {"sjcq-table3"}


def test_only_text_between_the_markers_is_replaced():
    page = "before <!-- begin a --> old <!-- end a --> after <!-- begin b --> old <!-- end b -->"

    assert report.fill_page(page, {"a": "new"}) == page.replace("a --> old <", "a -->\n\nnew\n\n<")
    with pytest.raises(SystemExit, match="the page has no part <!-- begin c -->"):
        report.fill_page(page, {"c": "new"})


def test_the_length_of_a_run_is_what_its_experiments_last_took():
    seconds = {"a": 90.0, "b": 30.0}

    assert describe_length(["a", "b"], seconds) == "2 experiments, about 2.0 min"
    assert describe_length(["b"], seconds) == "about 0.5 min"
    assert describe_length(["a", "b"], seconds, at_once=2) == "2 experiments, about 1.0 min"
    assert describe_length(["a", "c", "d"], seconds) == (
        "3 experiments, about 3.5 min (2 without a previous run, estimated by the median of the others)"
    )
    assert describe_length(["c"], {}) == "no previous run, so the time is unknown"


def test_the_remaining_time_is_shown_in_minutes():
    seconds = {"a": 90.0, "b": 30.0}

    assert describe_left(["a", "b"], seconds) == "about 2.0 min left"
    assert describe_left(["a", "b"], seconds, at_once=2) == "about 1.0 min left"
    assert describe_left(["a", "c", "d"], seconds) == "about 3.5 min left"
    assert describe_left(["c"], {}) == "time left unknown"


def test_seconds_are_kept_with_the_results(monkeypatch, tmp_path):
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    assert results.read_seconds(quick=False) == {}

    results.keep_seconds("churn", 12.345, quick=False)
    results.keep_seconds("band-tau", 2, quick=False)

    assert results.read_seconds(quick=False) == {"band-tau": 2, "churn": 12.3}
    assert results.read(quick=False) == []


def test_a_run_of_all_experiments_requires_a_clean_commit():
    check_commit("0123456789ab")

    with pytest.raises(SystemExit, match=r"benchmarks/ differ from commit 0123456789ab; .* commit first"):
        check_commit("0123456789ab+")
    with pytest.raises(SystemExit, match="not a git checkout"):
        check_commit("unknown")


def choice(case, index, seconds, is_chosen=False):
    return {
        "kind": "time", "target": "planner", "case": case, "contestant": index, "index": index, "is_chosen": is_chosen,
        "seconds": seconds, "ratio": 1.0, "build_seconds": 0.5, "bytes_a_query": 60.0,
        "commit": "c", "date": "2026-01-01",
        "machine": {"processor": "p", "cores": 2, "memory_gib": 4, "system": "s", "python": "3", "packages": {}},
    }  # fmt: skip


def test_the_matrix_shows_times_over_the_best_and_the_choice():
    rows = [choice("x", "Lists", 2.0, True), choice("x", "Scan", 4.0), choice("y", "Scan", 3.0, True)]

    target = next(target for target in EVERY_TARGET if target.key == "planner")
    lines = report._section(target, rows).splitlines()

    assert lines[2:6] == [
        "| workload | Lists | Scan |",
        "| --- | --- | --- |",
        "| x | **1** | 2 |",
        "| y |  | **1** |",
    ]
    assert "| x | Lists | 2 s | 1 x | 500 ms | 60 |  |" in lines


def point(contestant, kind="time", **more):
    row = {"kind": kind, "contestant": contestant, "target": "bmq-fig6", "x": 10, "x_name": "queries", "n_rows": 100}
    return row | ({"seconds": 0.001} if kind == "time" else {"value": 3.0}) | more


def test_times_are_per_row_or_reading_or_as_the_experiment_defines():
    rows = [
        point("a", answers="events"),
        point("b", answers="pairs"),
        point("c", answers="pairs", y_name="microseconds a vessel"),
        point("d", kind="value", y_name="MB"),
    ]

    assert _panels(rows) == {
        ("microseconds a reading", "queries"): {"a": [(10, pytest.approx(10))]},
        ("microseconds a row", "queries"): {"b": [(10, pytest.approx(10))]},
        ("microseconds a vessel", "queries"): {"c": [(10, pytest.approx(10))]},
        ("MB", "queries"): {"d": [(10, 3.0)]},
    }


def test_every_contestant_of_a_figure_has_a_line(tmp_path):
    names = [f"contestant {number}" for number in range(11)]
    draw_plots([point(name, answers="events", x=x) for name in names for x in (10, 20)], tmp_path)

    drawn = (tmp_path / "bmq-fig6.svg").read_text()

    assert [name for name in names if f"<!-- {name} -->" not in drawn] == []


def test_a_value_is_shown_with_its_note():
    row = {"kind": "value", "case": "c", "measure": "ms, ours", "value": 2.0}

    assert report._verdict_line(row) == ["c", "ms, ours", "2", "", ""]
    assert report._verdict_line(row | {"note": "of a few"}) == ["c", "ms, ours (of a few)", "2", "", ""]
