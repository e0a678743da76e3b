"""The demo at a small size: it ends well, its check is real, and its report is there."""

from __future__ import annotations

import re

import pytest

from vedette.cli.jobs.demo import Demo
from vedette.demo.report import in_words
from vedette.errors import FileError


def test_the_demo_agrees_with_spark_and_leaves_a_report(spark, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(type(spark), "stop", lambda self: None)  # other tests go on with the session
    for name, value in (("_JOIN_SECONDS", 0.2), ("_FILES", 8), ("_CHECKED", 10)):
        monkeypatch.setattr(f"vedette.cli.jobs.demo.{name}", value)

    assert Demo(20_000, 3_000, seed=1, output_dir=tmp_path, quiet=True).run()

    printed = " ".join(capsys.readouterr().out.split())
    assert "Busiest symbols" in printed
    assert "Most triggered alerts" in printed
    assert len(re.findall(r"ticks a second from a cold start, [\d,]+ in steady state", printed)) == 2
    assert "enter and exit events" in printed
    assert "Spark's own join: " in printed
    assert "DuckDB, split by hand: " in printed
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")
    assert "data:image/png;base64," in (tmp_path / "report.html").read_text()


def test_a_place_that_cannot_be_written_is_reported_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(FileError, match=r"cannot write .*; choose another with --output-dir"):
        Demo(1000, 10, 1, tmp_path / "file" / "report").run()


def test_durations_are_shown_in_words():
    assert in_words(59.96) == "60.0 seconds"
    assert in_words(61) == "1 minute 1 second"
    assert in_words(3600) == "1 hour"
