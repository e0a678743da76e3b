"""The README's Python is run, and does what its comments say."""

from __future__ import annotations

import re

import pytest
from docs_pages import ROOT, run_python

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_runs_as_it_is():
    names = run_python("README.md")

    assert names["alerts"].match_one({"symbol": "IBM", "price": 39.5, "volume": 100}) == ["cheap-ibm"]
    assert names["hits"].to_arrow().to_pylist() == [{"row": 0, "query": "cheap-ibm"}, {"row": 1, "query": "odd-lot"}]


@pytest.mark.fast
def test_the_readme_runs_in_spark(spark):
    names = run_python("README.md", spark=True)

    assert [(row.symbol, row.query) for row in names["found"].collect()] == [("IBM", "cheap-ibm")]


def test_the_calls_in_the_table_of_operators_run():
    import vedette as vd

    calls = [cells.split(" | ")[2].strip("`") for cells in re.findall(r"^\| (\w.*\[.*) \|$", README, re.MULTILINE)]
    fields = "truck string, x double, ts bigint"
    alerts, pairs, bands = vd.QuerySet(fields), vd.JoinQuerySet(left=fields, right=fields), vd.BandQuerySet()
    alerts.add("low", "x < 5")
    pairs.add("same", "left.truck = right.truck", within=5)
    bands.add("near", -1, 1)
    rows = {"truck": ["A"], "x": [1.0], "ts": [0]}
    values = {"id": ["r"], "value": [1.0]}
    objects = {"id": ["o"], "x": [0], "y": [0], "vx": [0], "vy": [0]}
    names = {"vd": vd, "alerts": alerts, "pairs": pairs, "bands": bands, "rows": rows, "values": values}

    answers = [eval(call, names | {"objects": objects}) for call in calls]

    assert len(answers) == 5
    assert answers[0].to_arrow().num_rows == 1
    assert [answer.num_rows for answer in answers[1:]] == [1, 1, 0, 1]


def test_the_readme_is_short():
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    prose = re.sub(r"^\|.*$|\]\([^)]*\)", "", prose, flags=re.MULTILINE)

    assert len(prose.split()) < 750


def test_every_file_that_the_readme_names_exists():
    for name in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", README):
        assert (ROOT / name).exists(), name
