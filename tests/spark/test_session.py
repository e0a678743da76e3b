"""The session we build, and what we say where Spark cannot start."""

from __future__ import annotations

import os
import stat

import pytest
from pyspark.sql import SparkSession

import vedette as vd
from vedette import spark as vs


def test_the_session_is_set_for_large_batches_state_and_utc(spark):
    assert int(spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")) >= 65_536
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"


def test_own_settings_go_before_ours(spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    assert vs.session(**{name: 5000}).conf.get(name) == "5000"
    spark.conf.set(name, before)


@pytest.mark.parametrize(
    ("master", "is_local"), [("local[2]", True), ("local-cluster[2,1,1024]", True), ("spark://a:7077", False)]
)
def test_only_a_local_session_keeps_to_the_loopback(monkeypatch, master, is_local):
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: builder._options)
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)

    options = vs.session(master=master)

    assert options.get("spark.driver.host") == ("127.0.0.1" if is_local else None)
    assert ("spark.driver.bindAddress" in options, "SPARK_LOCAL_IP" in os.environ) == (is_local, is_local)


def test_without_java_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        vd.PipelineError, match=r"needs Java 17 or later, but there is no java on the PATH.*install it:"
    ):
        vs.session()


def test_an_old_java_is_told_by_its_version(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(vd.PipelineError, match=r"JAVA_HOME is .*, which holds Java 8; point it at one, or unset it"):
        vs.session()


def test_an_unknown_log_level_is_refused():
    with pytest.raises(vd.PipelineError, match="unknown log level 'loud'; levels are: TRACE"):
        vs.session(log_level="loud")
