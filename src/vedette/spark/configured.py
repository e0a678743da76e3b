"""Spark settings from outside the program: from spark-submit, spark-defaults.conf and the environment."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from pyspark import SparkConf
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession
from pyspark.util import is_remote_only

_UNDER_SUBMIT = "PYSPARK_GATEWAY_PORT"  # spark-submit sets it for the program that it runs
_OPTIONS = {
    "--master": "spark.master",
    "--remote": "spark.remote",
    "--name": "spark.app.name",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}
_VARIABLES = {
    "SPARK_REMOTE": "spark.remote",
    "SPARK_API_MODE": "spark.api.mode",
    "MASTER": "spark.master",
    "SPARK_DRIVER_MEMORY": "spark.driver.memory",
    "SPARK_EXECUTOR_MEMORY": "spark.executor.memory",
}


def is_under_submit() -> bool:
    """Whether spark-submit runs this program, so that the Java process is already running."""
    return _UNDER_SUBMIT in os.environ


def has_session() -> bool:
    """Whether this process already has a session, classic or Connect."""
    if not is_remote_only():
        from pyspark import SparkContext

        if SparkContext._active_spark_context is not None:
            return True
    return SparkSession.getActiveSession() is not None


def read_configured() -> dict[str, str]:
    """The settings that a new session of this process would have, without Spark's defaults."""
    values = {name: os.environ[variable] for variable, name in _VARIABLES.items() if os.environ.get(variable)}
    if is_under_submit():
        from pyspark import SparkContext

        SparkContext._ensure_initialized()
        return values | dict(SparkConf().getAll())
    options = _read_options(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    file = options.pop("--properties-file", None)
    return values | _read_properties(_directory() / "spark-defaults.conf" if file is None else Path(file)) | options


def has_log_settings() -> bool:
    """Whether a file configures Spark's logging."""
    return any((_directory() / f"log4j2.{kind}").exists() for kind in ("properties", "xml", "yaml", "json"))


def _directory() -> Path:
    """Where Spark's settings are. The package pyspark-client has no such directory, and no home of Spark."""
    given = os.environ.get("SPARK_CONF_DIR")
    if given or is_remote_only():
        return Path(given or os.devnull)
    return Path(_find_spark_home(), "conf")


def _read_options(arguments: str) -> dict[str, str]:
    """The settings among options of spark-submit."""
    values: dict[str, str] = {}
    words = iter(re.sub(r"^(--[\w-]+)=", r"\1 ", word, count=1) for word in shlex.split(arguments))
    for word in words:
        option, has_value, value = word.partition(" ")
        if option in ("--conf", "-c"):
            name, _, value = (value if has_value else next(words, "")).partition("=")
            values[name.strip()] = value
        elif option in _OPTIONS or option == "--properties-file":
            values[_OPTIONS.get(option, option)] = value if has_value else next(words, "")
    return values


def _read_properties(file: Path) -> dict[str, str]:
    """The lines `name value`, `name=value` or `name: value` of a file; empty if it cannot be read."""
    try:
        lines = [line.strip() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError):
        return {}
    pairs = [re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!"]
    return {pair[0]: pair[-1] if len(pair) > 1 else "" for pair in pairs if pair[0].startswith("spark.")}
