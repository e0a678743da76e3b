"""Checks of a session that need no Spark."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import vedette as vd
from vedette.spark.checks import check_state_store

PROVIDER = "spark.sql.streaming.stateStore.providerClass"


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
