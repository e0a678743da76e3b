"""The README's Python is run, and says what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parent.parent / "README.md"


def blocks():
    return re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_readme_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    for block in blocks():
        if "vedette import spark" not in block:
            exec(block, scope)

    alerts, hits = scope["alerts"], scope["hits"]
    assert alerts.match_one({"symbol": "IBM", "price": 39.5, "volume": 100}) == ["cheap-ibm"]
    np.testing.assert_array_equal(hits.starts, [0, 1, 3, 4])
    assert hits.to_arrow().column_names == ["row", "query"]
    assert hits.ids.to_pylist() == hits.positions.tolist()
    assert scope["found"].to_pylist() == [{"query": "spread", "left": 0, "right": 0}]
    assert scope["changes"].to_pylist() == [{"sign": 1, "query": "above", "left": "r", "right": "s"}]
    assert scope["meetings"].to_pylist() == [{"sign": 1, "a": "Ada", "b": 7, "start": 14.0, "end": 20.0}]
    assert scope["registry"].get("alerts", "cheap-ibm").metadata == {"owner": "ann"}
    assert scope["ahead"].to_pylist() == [{"a": "Ada", "b": 7}]


def test_the_readme_runs_in_spark_too(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    answers = []
    for block in blocks():
        exec(block, scope)
        if "vedette import spark" in block:
            answers.append(sorted((row.symbol, row.query) for row in scope["hits"].collect()))

    assert answers == [[("IBM", "cheap-ibm"), ("SAP", "odd lot")], [("IBM", "cheap-ibm")]]


def test_every_file_that_the_readme_names_is_there():
    for name in re.findall(r"\]\(([\w./-]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / name).exists(), name
