"""The type of ids in answers about a followed set: the same in all micro-batches of a checkpoint, whatever comes."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as t
from spark.streams import read_answers, read_stream, start_stream, write_batches

import vedette as vd
from vedette import spark as vs


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    yield made
    made.close()


class Feed:
    """A pipeline that is started again for each file, with one checkpoint and one folder of answers."""

    def __init__(self, spark, registry, directory):
        self.spark, self.registry, self.directory = spark, registry, directory
        self.n = 0

    def take(self, meanwhile=lambda: None):
        """Take one more row, as a batch of its own; `meanwhile` happens after the pipeline has begun."""
        write_batches([pa.table({"x": [5.0]})], self.directory / "rows", first=self.n)
        self.n += 1
        rows = read_stream(self.spark, self.directory / "rows")
        answers = rows.transform(vs.match(self.registry.follow("alerts")))
        meanwhile()
        start_stream(answers, self.directory).awaitTermination()
        return answers.schema["query"].dataType

    def read(self):
        """The ids in all answers, as each batch has them."""
        batches = read_answers(self.directory).values()
        return [table.column("query").to_pylist() for tables in batches for table in tables]


def test_a_restart_does_not_change_the_type_of_ids_of_a_set_that_began_empty(spark, registry, tmp_path):
    registry.create("alerts", schema="x double")
    feed = Feed(spark, registry, tmp_path)

    types = [feed.take()]
    with pytest.raises(vd.QueryError, match="the ids of this set are strings; got the integer 7"):
        registry.add("alerts", 7, "x > 1")
    registry.add("alerts", "7", "x > 1")
    types.append(feed.take())

    assert types == [t.StringType(), t.StringType()]
    assert feed.read() == [["7"]]


def test_a_set_for_integers_has_them_in_all_answers_though_it_began_empty(spark, registry, tmp_path):
    registry.create("alerts", schema="x double", ids="integer")
    feed = Feed(spark, registry, tmp_path)

    types = [feed.take()]
    registry.add("alerts", 7, "x > 1")
    types.append(feed.take())

    assert types == [t.LongType(), t.LongType()]
    assert feed.read() == [[7]]


def test_integers_that_come_before_the_first_micro_batch_ask_for_a_new_start(spark, registry, tmp_path):
    registry.create("alerts", schema="x double")
    feed = Feed(spark, registry, tmp_path)

    with pytest.raises(
        Exception, match="the first ids of set 'alerts' were added after this pipeline started and are integ"
    ):
        feed.take(meanwhile=lambda: registry.add("alerts", 7, "x > 1"))

    assert feed.take() == t.LongType()
    assert feed.read() == [[7], [7]]


def test_a_version_before_all_ids_is_not_followed_for_good(registry):
    registry.create("alerts", schema="x double")
    with pytest.raises(
        vd.PipelineError,
        match=r"vs.match is to stay at version 0 of set 'alerts', which has had no query, so that nobody knows .*; "
        r"make the set with registry.create\(..., ids='string'\) or 'integer', or follow a later version",
    ):
        vs.match(registry.follow("alerts", version=0))
    registry.add("alerts", 7, "x > 1")

    assert vs.match(registry.follow("alerts", version=0)) is not None
