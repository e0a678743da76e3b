"""Files inside Spark: an interrupt does not wait for the work."""

from __future__ import annotations

import time
from concurrent.futures import wait

import pytest

from vedette.spark.files import run_with_progress


def test_an_interrupt_does_not_wait_for_the_work(spark, monkeypatch):
    rows = spark.range(10**12)  # takes hours

    def interrupt(running, timeout):
        monkeypatch.setattr("vedette.spark.files.wait", wait)
        raise KeyboardInterrupt

    monkeypatch.setattr("vedette.spark.files.wait", interrupt)
    began = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        run_with_progress(lambda: rows.selectExpr("sum(id % 7)").collect(), rows, lambda done, n_rows: None)
    assert time.monotonic() - began < 60
