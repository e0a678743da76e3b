"""Checks of a session that need no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import pytest
from pyspark.sql.types import StructType

import vedette as vd
from vedette.spark.checks import check_state_store
from vedette.spark.shards.transform import run

PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class Session:
    """A session on two cores with two partitions of state."""

    conf: ClassVar = {"spark.sql.shuffle.partitions": "2"}

    def sql(self, text):
        return SimpleNamespace(collect=lambda: [["Range (0, 1, step=1, splits=2)"]])


def rows_of_session(**settings):
    return SimpleNamespace(sparkSession=SimpleNamespace(conf=settings))


@pytest.mark.parametrize("package", ["org.apache.spark.sql.execution.streaming.state", "com.vendor.streaming.state"])
def test_rocksdb_is_accepted_from_any_package(package):
    check_state_store(rows_of_session(**{PROVIDER: f"{package}.RocksDBStateStoreProvider"}), "vs.border")


@pytest.mark.parametrize(
    "provider", [None, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"]
)
def test_other_state_stores_are_refused(provider):
    with pytest.raises(vd.PipelineError, match=r"a stream with vs.border needs RocksDB as its state store; .* set it"):
        check_state_store(rows_of_session(**{PROVIDER: provider}), "vs.border")


def test_a_release_without_stateful_streams_through_connect_says_what_works():
    frame = SimpleNamespace(sparkSession=Session(), groupBy=lambda name: SimpleNamespace())

    with pytest.raises(
        vd.PipelineError, match=r"^PySpark \S+ has no stateful streams .* use Spark 4\.1 or later, or a"
    ):
        run(frame, "0.1.0", {"is_timed": False}, StructType([]), is_stream=True)
