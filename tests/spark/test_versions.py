"""Every operator with several releases of Spark and Python: batch, stream, Connect, kills, and changes of release.

TESTED_SPARKS lists the interpreters to test with, as NAME=PYTHON, in the order of their releases;
`scripts/test-matrix` makes them. Without it, only the interpreter that runs the tests is tested.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark.modes import Run, run_and_kill
from spark.pipelines import CLUSTER, CONNECT, Pipeline

from tests.docs_pages import ROOT

GIVEN = [each.partition("=")[::2] for each in os.environ.get("TESTED_SPARKS", f"installed={sys.executable}").split()]
# Each release by itself, and each followed by the next one.
RUNS = [(each, each) for each in GIVEN] + list(itertools.pairwise(GIVEN))

pytestmark = pytest.mark.matrix


def has_stateful_connect(python):
    """Whether a release has stateful streams in Python through Spark Connect."""
    script = "import pyspark, pathlib; print(pathlib.Path(pyspark.__file__).parent)"
    home = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    return "def transformWithStateInPandas" in Path(home, "sql", "connect", "group.py").read_text()


@pytest.mark.parametrize(("first", "then"), RUNS, ids=lambda each: each[0])
def test_no_answer_is_lost_or_duplicated(first, then, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    run = Run(tmp_path)
    with Pipeline("modes_pipeline.py", tmp_path) as pipeline:
        settings = CONNECT
        if not has_stateful_connect(first[1]):  # Spark 4.0: batches and matching through Connect, then all streams
            pipeline.start(first[1], **CONNECT)
            pipeline.finish()
            settings = {"master": "local[2]"}
        run_and_kill(pipeline, {"python": first[1]} | settings, {"python": then[1]} | CLUSTER)

    run.check_match()
    run.check_border()
    run.check_window_join()
    run.check_band_join()
    run.check_moving_join()
