"""The examples work as described."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_price_alerts_example_finds_the_same_as_batch_and_stream(spark, tmp_path):
    example = runpy.run_path(str(EXAMPLES / "price_alerts.py"))
    alerts, ticks = example["make_alerts"](), example["make_ticks"](spark)

    batch = example["run_batch"](ticks, alerts)

    assert batch == [("after-lunch", "SAP"), ("big-ticket", "IBM"), ("cheap-ibm", "IBM"), ("tech-block", "IBM")]
    assert example["run_stream"](spark, ticks, alerts, tmp_path) == batch
