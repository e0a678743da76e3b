"""A Spark session. A local one gets suitable settings: large Arrow batches, RocksDB state, quiet logs, UTC, loopback.

Your settings and configuration files override these defaults. Sessions on clusters and Connect servers get none.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.util import is_remote_only

from vedette.errors import PipelineError
from vedette.settings import settings
from vedette.spark.configured import has_log_settings, has_session, is_under_submit, read_configured
from vedette.spark.java import check_java
from vedette.spark.log_filter import quiet_start

_LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
_EVERY_CORE = "local[*]"
_LOG_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


def session(
    app_name: str | None = None,
    *,
    master: str | None = None,
    remote: str | None = None,
    log_level: str = "ERROR",
    **conf: Any,
) -> SparkSession:
    """A Spark session: `vs.session("ticks", **{"spark.driver.memory": "8g"})`.

    `master` says where Spark runs. `remote` requests a Spark Connect session instead ("local[2]", or "sc://host"). By
    default it is the master that spark-submit, spark-defaults.conf or the environment configures, else "local[*]".

    A local session gets suitable defaults. Arguments and configured values override them. Sessions on a cluster or a
    Connect server get only what you pass. If this process already has a session, it is returned, and only what you pass
    is changed.
    """
    if log_level.upper() not in _LOG_LEVELS:
        raise PipelineError(f"unknown log level {log_level!r}; levels are: {', '.join(_LOG_LEVELS)}")
    places = {"spark.app.name": app_name, "spark.master": master, "spark.remote": remote}
    given = {name: value for name, value in places.items() if value is not None}
    given |= {name: str(value) for name, value in conf.items()}
    if has_session():
        return _build({name: value for name, value in given.items() if name != "spark.app.name"})
    known = read_configured()
    if "spark.remote" not in given and "spark.master" not in given and "spark.remote" in known:
        given["spark.remote"] = known["spark.remote"]
    at = given.get("spark.remote") or given.get("spark.master") or known.get("spark.master")
    if at is not None and at.startswith("sc://"):
        return _build(given)
    if is_remote_only():
        raise PipelineError(
            "the installed PySpark is pyspark-client, which can only connect to a Spark Connect server; pass "
            "remote='sc://host', or install all of PySpark: pip install 'vedette[spark]'"
        )
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers use this Python, which has Vedette
    defaults: dict[str, str] = {}
    if at is None or at.startswith("local"):  # on a cluster, executors of other hosts must find the driver
        defaults = _local_settings(at or _EVERY_CORE, log_level) | ({"spark.master": _EVERY_CORE} if at is None else {})
    values = {name: value for name, value in defaults.items() if name not in known} | given
    is_connect = "spark.remote" in values or (known | values).get("spark.api.mode", "").lower() == "connect"
    with _found_port() if is_connect else nullcontext():
        return _build(values)


def _build(values: dict[str, str]) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder
    for name, value in values.items():
        builder = builder.config(name, value)
    with quiet_start():
        return builder.getOrCreate()


def _local_settings(at: str, log_level: str) -> dict[str, str]:
    """The defaults for a local session."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    values = {"spark.app.name": "vedette", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if not is_under_submit():  # spark-submit has already started the Java process
        values |= _process_settings(log_level)
    return values | _query_settings(at)


def _query_settings(at: str) -> dict[str, str]:
    """Settings that can be changed at any time."""
    return {
        "spark.sql.session.timeZone": "UTC",
        # Rows cross to Python and back in batches. Matching 4M rows of three columns took a fifth less time in batches
        # of 256k rows than in Spark's 10k. Spark limits batches of wide rows to 64 MB.
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(settings().arrow_batch_rows),
        "spark.sql.shuffle.partitions": str(count_local_cores(at)),
    } | state_settings()


def state_settings() -> dict[str, str]:
    """Settings for state in RocksDB, which stateful transforms need."""
    return {
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }


def count_local_cores(master: str) -> int:
    """The cores of local, local[4], local[*], local[4,2] or local-cluster[workers,cores,memory]."""
    numbers = re.findall(r"[\d*]+", master)
    n_cores = 1
    for number in numbers[: 2 if master.startswith("local-cluster") else 1]:
        n_cores *= (os.cpu_count() or 2) if number == "*" else max(int(number), 1)
    return n_cores


def _process_settings(log_level: str) -> dict[str, str]:
    """Settings that are fixed when the Java process starts."""
    logs = f"-Dlog4j2.configurationFile={_log_settings()} -Dvedette.log.level={log_level.lower()}"
    options = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
    return ({} if has_log_settings() else dict.fromkeys(options, logs)) | {
        "spark.driver.memory": "2g",
        # A Connect server of this process uses any free port; with PySpark's fixed port, a host could run only one.
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _log_settings() -> str:
    """The address of the log settings, for Java. A package in a zip, as with --py-files, has them inside."""
    archive = getattr(__spec__.loader, "archive", None)
    if archive is None:
        return _LOG_SETTINGS.as_uri()
    return f"jar:{Path(archive).absolute().as_uri()}!/{_LOG_SETTINGS.relative_to(archive).as_posix()}"


@contextmanager
def _found_port() -> Iterator[None]:
    """While a session starts, addresses without a port use the port of this process's Connect server."""
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    usual = DefaultChannelBuilder.default_port
    DefaultChannelBuilder.default_port = staticmethod(  # type: ignore[method-assign]
        lambda: _port_of_this_process() or usual()
    )
    try:
        yield
    finally:
        DefaultChannelBuilder.default_port = staticmethod(usual)  # type: ignore[method-assign]


def _port_of_this_process() -> int | None:
    session = SparkSession._instantiatedSession
    if session is None:
        return None
    service = "org.apache.spark.sql.connect.service.SparkConnectService$"
    return int(getattr(getattr(session._jvm, service), "MODULE$").localPort())
