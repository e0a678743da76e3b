"""The session, and the errors if Spark cannot start."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

import vedette as vd
from vedette import spark as vs


def test_the_session_is_set_for_large_batches_state_and_utc(spark):
    assert int(spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")) >= 65_536
    assert "RocksDB" in spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"


def test_own_settings_override_the_defaults(spark):
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    assert vs.session(**{name: 5000}).conf.get(name) == "5000"
    spark.conf.set(name, before)


@pytest.fixture
def built(monkeypatch, tmp_path):
    """The options of a new session if nothing is configured."""
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: builder._options)
    monkeypatch.setattr(sys.modules[vs.session.__module__], "has_session", lambda: False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in ("SPARK_LOCAL_IP", "SPARK_REMOTE", "MASTER", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    return vs.session


@pytest.mark.parametrize(
    ("place", "n_cores"),
    [
        ({"master": "local"}, 1),
        ({"master": "local[*]"}, os.cpu_count()),
        ({"master": "local[5]"}, 5),
        ({"master": "local[3, 7]"}, 3),
        ({"master": "local-cluster[2,3,1024]"}, 6),
        ({"remote": "local[2]"}, 2),
    ],
)
def test_a_local_session_has_the_defaults_and_uses_the_loopback_interface(built, place, n_cores):
    options = built(**place)

    assert options["spark.driver.host"] == options["spark.driver.bindAddress"] == "127.0.0.1"
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert options["spark.sql.shuffle.partitions"] == str(n_cores)
    assert {f"spark.{name}": options.get(f"spark.{name}") for name in place} == {
        f"spark.{name}": value for name, value in place.items()
    }


@pytest.mark.parametrize(
    "place", [{"master": "spark://a:7077"}, {"master": "yarn"}, {"master": "k8s://https://a"}, {"remote": "sc://a"}]
)
def test_a_remote_session_gets_only_what_is_passed(built, place):
    options = built("ticks", **place, **{"spark.driver.memory": "8g"})

    assert options == {
        "spark.app.name": "ticks",
        "spark.driver.memory": "8g",
        **{f"spark.{name}": value for name, value in place.items()},
    }
    assert "SPARK_LOCAL_IP" not in os.environ


def test_by_default_a_session_is_local(built):
    assert built()["spark.master"] == "local[*]"


@pytest.mark.parametrize(
    "lines",
    [
        "# ours\nspark.master  local[3]\nspark.sql.shuffle.partitions 7\nspark.driver.memory\t3g\n",
        "spark.master=local[3]\nspark.sql.shuffle.partitions = 7\n\nspark.driver.memory: 3g",
    ],
)
def test_spark_defaults_override_the_defaults(built, tmp_path, lines):
    (tmp_path / "spark-defaults.conf").write_text(lines)

    options = built()

    assert not {"spark.master", "spark.sql.shuffle.partitions", "spark.driver.memory"} & set(options)
    assert options["spark.driver.host"] == "127.0.0.1"
    assert built(**{"spark.sql.shuffle.partitions": 9})["spark.sql.shuffle.partitions"] == "9"


def test_a_cluster_from_spark_defaults_gets_no_defaults(built, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.master spark://a:7077\n")

    assert built() == {}
    assert built(master="local[2]")["spark.sql.shuffle.partitions"] == "2"


def test_own_log_settings_of_spark_are_kept(built, tmp_path):
    assert "spark.driver.extraJavaOptions" in built()
    (tmp_path / "log4j2.properties").write_text("")

    assert "spark.driver.extraJavaOptions" not in built()


def test_arguments_for_spark_submit_in_the_environment_are_used(built, monkeypatch, tmp_path):
    file = tmp_path / "other.conf"
    file.write_text("spark.driver.memory 3g")
    words = f"--master local[3] --conf spark.sql.shuffle.partitions=7 --name='my app' --properties-file {file}"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{words} pyspark-shell")

    taken = {"spark.master", "spark.sql.shuffle.partitions", "spark.app.name", "spark.driver.memory"}
    assert not taken & set(built())


def test_a_connect_server_from_the_environment_is_used(built, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://a:15002")

    assert built("ticks") == {"spark.app.name": "ticks", "spark.remote": "sc://a:15002"}


def test_an_existing_session_is_not_changed(spark):
    names = ("spark.sql.shuffle.partitions", "spark.sql.session.timeZone", "spark.app.name")
    before = {name: spark.conf.get(name) for name in names}
    changed = {"spark.sql.shuffle.partitions": "13", "spark.sql.session.timeZone": "Asia/Tokyo"}
    try:
        for name, value in changed.items():
            spark.conf.set(name, value)

        assert vs.session() is spark
        assert {name: vs.session("other", master="local[1]").conf.get(name) for name in names} == before | changed
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


PROGRAM = """
import json
from vedette import spark as vs
spark = vs.session()
names = ["master", "app.name", "driver.memory", "sql.shuffle.partitions", "sql.session.timeZone"]
print("SEEN " + json.dumps({f'spark.{name}': spark.conf.get(f'spark.{name}') for name in names}))
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["spark-submit", "spark-defaults.conf"])
@pytest.mark.full
def test_the_configuration_of_the_user_overrides_the_defaults(tmp_path, how):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_REMOTE", "MASTER")}
    wanted = {"spark.sql.shuffle.partitions": "7", "spark.driver.memory": "700m"}
    if how == "spark-submit":
        submit = Path(_find_spark_home()) / "bin" / "spark-submit"
        settings = [word for pair in wanted.items() for word in ("--conf", "=".join(pair))]
        command = [str(submit), "--master", "local[3]", "--name", "mine", *settings, str(program)]
        environment |= {"PYSPARK_PYTHON": sys.executable}
    else:
        lines = [f"{name} {value}\n" for name, value in (wanted | {"spark.master": "local[3]"}).items()]
        (tmp_path / "spark-defaults.conf").write_text("".join([*lines, "spark.app.name mine\n"]))
        environment |= {"SPARK_CONF_DIR": str(tmp_path)}
        command = [sys.executable, str(program)]

    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    seen = [json.loads(line[5:]) for line in ran.stdout.splitlines() if line.startswith("SEEN ")]
    assert seen, ran.stderr[-2000:]
    expected = wanted | {"spark.master": "local[3]", "spark.app.name": "mine", "spark.sql.session.timeZone": "UTC"}
    assert seen == [expected]


def test_without_java_the_error_says_what_to_install(built, monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(vd.PipelineError, match=r"needs Java 17 or later, but java is not on the PATH.*install it:"):
        vs.session()


def test_an_old_java_is_refused_with_its_version(built, monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(
        vd.PipelineError, match=r"JAVA_HOME is .*, which has Java 8; set JAVA_HOME to such a Java, or unset it"
    ):
        vs.session()


def test_an_unknown_log_level_is_refused():
    with pytest.raises(vd.PipelineError, match="unknown log level 'loud'; levels are: TRACE"):
        vs.session(log_level="loud")
