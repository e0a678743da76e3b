"""ARCHITECTURE.md names files that exist, and traces a row through each operator in at most ten of them."""

from __future__ import annotations

import re
import tomllib

import pytest
from docs_pages import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "src" / "vedette"
FOLDERS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and not path.name.startswith("__"))
TRACES = ["How a row is matched", "How a border event is found", "How a window join works", "How a band join works"]
TRACES += ["How a moving join works"]


def files_of(title: str) -> list[str]:
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w/]+\.py)`", section, re.MULTILINE)


def test_every_path_on_the_page_exists():
    paths = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./]*)`", PAGE)

    assert len(paths) > 50
    assert [path for path in paths if not (PACKAGE / path).exists()] == []


@pytest.mark.parametrize("title", TRACES)
def test_a_row_passes_at_most_ten_files_from_spark_to_the_kernel(title):
    shared = ["spark/shards/transform.py", "spark/shards/packing.py", "spark/workers/shard.py"]
    files = files_of(title)
    steps = files + ([] if title == TRACES[0] else shared)

    assert files[0].startswith("spark/")
    assert len(steps) <= 10
    assert len(set(steps)) == len(steps)
    kernels = (PACKAGE / files[-1 if title != TRACES[0] else -2]).read_text()
    assert "kernel" in kernels


def test_the_shared_files_of_stateful_operators_are_on_the_page():
    assert files_of("How stateful operators run on Spark")[:3] == [
        "spark/shards/transform.py",
        "spark/shards/packing.py",
        "spark/workers/shard.py",
    ]


def test_the_layers_on_the_page_are_those_that_imports_are_checked_by():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [re.findall(r"\w+", layer) for layer in contracts[0]["layers"]]
    block = PAGE.split("```\n")[1]
    at = {name: place for place, line in enumerate(block.splitlines()) for name in re.findall(r"\b\w+\b", line[:14])}
    named = {name for line in block.splitlines() for name in re.findall(r"(?:^|\| )(\w+)", line)}

    assert named == set(FOLDERS) | {"settings", "errors", "extras"}
    order = [at[name] for layer in layers for name in layer if name in at]
    assert order == sorted(order)
