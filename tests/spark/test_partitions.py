"""The number of state partitions of a stream: warnings, and what `vedette run` sets."""

from __future__ import annotations

import logging

import pytest
from spark.streams import read_stream, write_rows
from spark.ticks import make_rows

import vedette as vd
from vedette import spark as vs
from vedette.spark import partitions
from vedette.spark.partitions import PARTITIONS, count_cores, fit_partitions, read_partitions


@pytest.fixture
def conf(spark):
    before = spark.conf.get(PARTITIONS)
    yield spark.conf
    spark.conf.set(PARTITIONS, before)


@pytest.fixture
def rows(spark, tmp_path):
    write_rows(make_rows(10), tmp_path / "rows", 1)
    return read_stream(spark, tmp_path / "rows")


def make_queries(rows):
    queries = vd.QuerySet("symbol string, price double, ts timestamp")
    queries.add("q", "price < 40")
    return rows.transform(vs.border(queries, key="symbol", time="ts"))


def test_the_cores_of_spark_are_counted(spark):
    assert count_cores(spark) == spark.sparkContext.defaultParallelism == 2


def test_a_stream_with_more_than_four_partitions_per_core_logs_one_warning(conf, rows, caplog, monkeypatch):
    monkeypatch.setattr(partitions, "_warned", set())
    with caplog.at_level(logging.WARNING, logger="vedette"):
        conf.set(PARTITIONS, "8")
        make_queries(rows)
        assert not caplog.records

        conf.set(PARTITIONS, "9")
        make_queries(rows)
        make_queries(rows)

    (record,) = caplog.records
    assert record.getMessage().startswith("the stream has 9 partitions of state on 2 cores, and each costs time")
    assert f'spark.conf.set("{PARTITIONS}", "2")' in record.getMessage()


def test_a_batch_and_a_stateless_transform_log_no_warning(spark, conf, rows, caplog, monkeypatch, tmp_path):
    monkeypatch.setattr(partitions, "_warned", set())
    conf.set(PARTITIONS, "200")
    queries = vd.QuerySet("symbol string, price double, ts timestamp")
    queries.add("q", "price < 40")
    with caplog.at_level(logging.WARNING, logger="vedette"):
        rows.transform(vs.match(queries))
        make_queries(spark.read.parquet(str(tmp_path / "rows")))

    assert not caplog.records


@pytest.mark.parametrize(("is_local", "expected"), [(True, "2"), (False, "16")])
def test_a_new_checkpoint_gets_a_partition_per_core_and_more_on_a_cluster(spark, conf, tmp_path, is_local, expected):
    conf.unset(PARTITIONS)

    fit_partitions(spark, [str(tmp_path / "none")], is_local)

    assert conf.get(PARTITIONS) == expected


def test_a_configured_number_is_kept(spark, conf, tmp_path):
    conf.set(PARTITIONS, "11")

    fit_partitions(spark, [str(tmp_path / "none")], True)

    assert conf.get(PARTITIONS) == "11"


@pytest.mark.parametrize("name", ["plain", "with space", "odd [1]{a}*?"])
def test_a_checkpoint_keeps_the_partitions_that_it_began_with(spark, conf, rows, tmp_path, name):
    checkpoint = tmp_path / name
    conf.set(PARTITIONS, "3")
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start().awaitTermination()
    conf.set(PARTITIONS, "200")

    assert read_partitions(spark, f"{checkpoint}/") == 3
    fit_partitions(spark, [str(tmp_path / "none"), str(checkpoint)], True)
    assert conf.get(PARTITIONS) == "3"
