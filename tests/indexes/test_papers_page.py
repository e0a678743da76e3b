"""The page on the papers names what is there, and all of it."""

from __future__ import annotations

import re
from pathlib import Path

from vedette.indexes import FOR_COMPARISON, INDEXES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
INDEX_ROWS = [row for row in ROWS if len(row) == 6 and row[2].strip("`") in INDEXES]


def test_every_index_to_compare_with_is_on_the_page():
    assert {row[2].strip("`") for row in INDEX_ROWS} == set(FOR_COMPARISON)


def test_each_index_is_in_the_file_that_the_page_names():
    for row in INDEX_ROWS:
        module = INDEXES[row[2].strip("`")].__module__
        assert row[3].strip("`") == module.removeprefix("vedette.").replace(".", "/") + ".py"


def test_the_page_tells_which_indexes_change_in_place():
    for row in INDEX_ROWS:
        assert (row[4] != "no") == hasattr(INDEXES[row[2].strip("`")], "insert")


def test_every_file_on_the_page_is_there():
    files = re.findall(r"`((?:indexes|operators)/[\w/]+\.py)`", PAGE)
    assert len(files) > 20
    assert not [file for file in files if not (ROOT / "src" / "vedette" / file).exists()]
    experiments = re.findall(r"`(benchmarks/[\w/]+\.py)`", PAGE)
    assert not [file for file in experiments if not (ROOT / file).exists()]
    assert not [
        link for link in re.findall(r"\]\((decisions/[\w-]+\.md)\)", PAGE) if not (ROOT / "docs" / link).exists()
    ]


def test_every_experiment_on_the_page_is_a_function_of_its_file():
    text = "".join((ROOT / file).read_text() for file in re.findall(r"`(benchmarks/[\w/]+\.py)`", PAGE))
    names = set(re.findall(r"\b(?:vci|vcr|sjcq|bmq)-(?:fig|table)\d+", PAGE))
    assert not [name for name in names if f"def {name.replace('-', '_')}(" not in text]
