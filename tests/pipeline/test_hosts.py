"""Whether Spark runs on this host only: other hosts cannot read a SQLite registry."""

from __future__ import annotations

import socket

import pytest

from vedette.pipeline.file import SparkPart
from vedette.pipeline.hosts import remote_setting

ELSEWHERE = "192.0.2.1"  # of a net that is for examples


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"master": "local"},
        {"master": "local[2]"},
        {"master": "local[2,4]"},
        {"master": "local-cluster[2,1,1024]"},
        {"master": "spark://127.0.0.1:7077"},
        {"remote": "local[2]"},
        {"remote": "sc://localhost"},
        {"remote": "sc://127.0.0.1:15002/;user_id=me"},
        {"remote": f"sc://{socket.gethostname()}:15002"},
        {"remote": "sc://no-such-host.invalid"},  # it cannot be found, which is setting by who looks for it
        {"master": "yarn", "settings": {"spark.master": "local[2]"}},
    ],
)
def test_spark_is_here(given):
    assert remote_setting(SparkPart(**given)) is None


@pytest.mark.parametrize(
    ("given", "setting"),
    [
        ({"master": "yarn"}, "spark.master is 'yarn'"),
        ({"master": "k8s://https://127.0.0.1:6443"}, "spark.master is 'k8s://https://127.0.0.1:6443'"),
        ({"master": "localhost"}, "spark.master is 'localhost'"),
        ({"master": f"spark://{ELSEWHERE}:7077"}, f"spark.master is 'spark://{ELSEWHERE}:7077'"),
        (
            {"master": f"spark://127.0.0.1:7077,{ELSEWHERE}:7077"},
            f"spark.master is 'spark://127.0.0.1:7077,{ELSEWHERE}:7077'",
        ),
        ({"remote": f"sc://{ELSEWHERE}"}, f"spark.remote is 'sc://{ELSEWHERE}'"),
        ({"remote": f"sc://{ELSEWHERE}:443/;token=s3cret"}, f"spark.remote is 'sc://{ELSEWHERE}:443'"),
        ({"settings": {"spark.master": "yarn"}}, "spark.settings.\"spark.master\" is 'yarn'"),
    ],
)
def test_spark_is_elsewhere_too(given, setting):
    assert remote_setting(SparkPart(**given)) == setting
