"""The page on the papers names what is there, and all of it."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import claims, results
from benchmarks.report import fill_page, write_papers
from benchmarks.targets import PAPERS
from vedette.indexes.names import INDEXES, PAPER_INDEXES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
INDEX_ROWS = [row for row in ROWS if len(row) == 6 and row[2].strip("`") in INDEXES]


def test_every_index_to_compare_with_is_on_the_page():
    assert {row[2].strip("`") for row in INDEX_ROWS} == set(PAPER_INDEXES)


def test_each_index_is_in_the_file_that_the_page_names():
    for row in INDEX_ROWS:
        module = INDEXES[row[2].strip("`")].__module__
        assert row[3].strip("`") == module.removeprefix("vedette.").replace(".", "/") + ".py"


def test_boxes_are_added_to_and_removed_from_every_index_of_the_papers():
    for row in INDEX_ROWS:
        assert row[4] in ("in place", "rebuilt")
        assert {"insert", "remove"} <= set(dir(INDEXES[row[2].strip("`")]))


def test_every_file_on_the_page_exists():
    files = re.findall(r"`((?:indexes|operators|papers|workload)/[\w/]+\.py)`", PAGE)
    assert len(files) > 40
    assert not [file for file in files if not (ROOT / "src" / "vedette" / file).exists()]
    experiments = re.findall(r"`(benchmarks/[\w/]+\.py)`", PAGE)
    assert not [file for file in experiments if not (ROOT / file).exists()]
    links = re.findall(r"\]\(([\w/-]+\.md)", PAGE)
    assert not [link for link in links if not (ROOT / "docs" / link).exists()]


def test_every_experiment_on_the_page_is_one_of_its_files():
    text = "".join((ROOT / file).read_text() for file in re.findall(r"`(benchmarks/[\w/]+\.py)`", PAGE))
    names = set(re.findall(r"\b(?:(?:vci|vcr|sjcq|bmq|mtb)-(?:fig|table)\d+|band-\w+)", PAGE))
    assert len(names) > 30
    assert not [name for name in names if f'"{name}"' not in text]


def test_every_figure_has_a_claim_and_a_page_of_its_own():
    assert {target.key for target in PAPERS} == set(claims.CLAIMS)
    for key in claims.CLAIMS:
        assert f"(benchmarks/{key}.md)" in PAGE
        assert (ROOT / "docs" / "benchmarks" / f"{key}.md").exists()


def test_the_results_on_the_page_are_those_that_were_measured():
    assert fill_page(PAGE, write_papers(results.read(quick=False))) == PAGE, "run: python -m benchmarks report"
