"""What Spark's workers import: the first answer of every executor waits for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Prints which of these modules a worker imports: those that compile texts or ask databases, and all transforms.
IMPORT = """if True:
    import importlib, sys
    for module in sys.argv[1:]:
        importlib.import_module(f"vedette.spark.{module}")
    needless = ("sqlglot", "sqlalchemy", "pydantic_settings", "vedette.registry", "vedette.pipeline")
    print(*(module for module in needless if module in sys.modules))
"""


@pytest.mark.parametrize("operator", ["match", "border", "window_join", "band_join", "moving_join"])
def test_a_worker_imports_neither_parsers_nor_databases_nor_transforms(operator):
    modules = ["shipping.kernels", *(["workers.shard"] * (operator != "match")), f"workers.{operator}"]

    done = subprocess.run(
        [sys.executable, "-c", IMPORT, *modules], stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )

    assert done.stdout.split() == []
