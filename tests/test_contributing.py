"""The changes that CONTRIBUTING.md walks through are made to a copy of the package, and work there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full  # kernels of the copy are compiled anew
ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
WORDS = ["IBM", "MBI", "", "été", "a\U0001f600b", "  x"]


def section(title: str) -> str:
    return GUIDE.split(f"## {title}\n")[1].split("\n## ")[0]


def follow(title: str, copy: Path) -> None:
    """Write the new files of a section, and apply its diffs, which add lines below a line that is there."""
    for path, text in re.findall(r'```python title="(.+?)"\n(.*?)```', section(title), re.DOTALL):
        assert not (copy / path).exists()
        (copy / path).write_text(text, encoding="utf-8")
    for path, lines in re.findall(r"```diff\n--- a/\S+\n\+\+\+ b/(\S+)\n@@\n(.*?)```", section(title), re.DOTALL):
        context, *added = lines.splitlines()
        page = (copy / path).read_text(encoding="utf-8")
        assert page.count(context[1:] + "\n") == 1, f"{path} has no line {context[1:]!r}"
        more = "".join(line.removeprefix("+") + "\n" for line in added)
        (copy / path).write_text(page.replace(context[1:] + "\n", context[1:] + "\n" + more), encoding="utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("src", "tests", "docs", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(copy: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    command = [sys.executable, *arguments]
    ran = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_a_function_added_by_the_guide_keeps_the_rows_that_spark_keeps(copy: Path, spark: Any) -> None:
    follow("Add a function", copy)
    texts = [
        "quote(s) = '\\'IBM\\''",
        "quote(s) LIKE '%b%'",
        "quote(s) = s",
        "length(quote(s)) > 4",
        "quote(s) < 'a'",
    ]
    program = f"""
import vedette as vd
queries = vd.QuerySet("s string")
queries.add_many({texts!r}, {texts!r})
matches = queries.match({{"s": {WORDS!r}}})
print(sorted(zip(matches.to_arrow()["row"].to_pylist(), matches.to_arrow()["query"].to_pylist())))
"""
    frame = spark.createDataFrame(list(enumerate(WORDS)), "row int, s string")
    expected = sorted((row.row, text) for text in texts for row in frame.filter(text).collect())

    assert run(copy, "-c", program) == f"{expected}\n"
    run(copy, "scripts/write-tables")
    assert "| `quote(s)` | `s` in single quotes |" in (copy / "docs" / "language.md").read_text(encoding="utf-8")


def test_an_index_added_by_the_guide_passes_the_contract_suite(copy: Path) -> None:
    follow("Add an index", copy)
    program = """
import numpy as np
import vedette as vd
queries = vd.QuerySet("x double", index="Sorted")
queries.add_boxes(np.arange(300), {"x": (np.arange(300.0), np.arange(300.0) + 9)})
print(queries.match_one({"x": 4.5}), "Sorted was asked" in queries.explain(), ": Sorted, " in queries.explain())
"""

    assert run(copy, "-c", program) == "[0, 1, 2, 3, 4] False True\n"
    told = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/indexes/test_contract.py", "-k", "Sorted")
    assert re.search(r"\d\d passed", told)
    run(copy, "scripts/write-tables")
    assert "| `Sorted` | 1 | boxes that mostly" in (copy / "docs" / "operators.md").read_text(encoding="utf-8")
