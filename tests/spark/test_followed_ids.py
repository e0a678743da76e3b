"""The type of ids in answers of a followed set: the same in all micro-batches of a checkpoint."""

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
    """A pipeline that is restarted for each file, with one checkpoint and one folder of answers."""

    def __init__(self, spark, registry, directory):
        self.spark, self.registry, self.directory = spark, registry, directory
        self.n = 0

    def take(self, concurrently=lambda: None):
        """Process one more row as a separate batch; `concurrently` is called after the pipeline has started."""
        write_batches([pa.table({"x": [5.0]})], self.directory / "rows", first=self.n)
        self.n += 1
        rows = read_stream(self.spark, self.directory / "rows")
        answers = rows.transform(vs.match(self.registry.follow("alerts")))
        concurrently()
        start_stream(answers, self.directory).awaitTermination()
        return answers.schema["query"].dataType

    def read(self):
        """The ids in all answers, per batch."""
        batches = read_answers(self.directory).values()
        return [table.column("query").to_pylist() for tables in batches for table in tables]


def test_a_restart_does_not_change_the_type_of_ids_of_an_initially_empty_set(spark, registry, tmp_path):
    registry.create("alerts", schema="x double")
    feed = Feed(spark, registry, tmp_path)

    types = [feed.take()]
    with pytest.raises(vd.QueryError, match="the ids of this set are strings; got the integer 7"):
        registry.add("alerts", 7, "x > 1")
    registry.add("alerts", "7", "x > 1")
    types.append(feed.take())

    assert types == [t.StringType(), t.StringType()]
    assert feed.read() == [["7"]]


def test_an_initially_empty_set_for_integers_has_integers_in_all_answers(spark, registry, tmp_path):
    registry.create("alerts", schema="x double", ids="integer")
    feed = Feed(spark, registry, tmp_path)

    types = [feed.take()]
    registry.add("alerts", 7, "x > 1")
    types.append(feed.take())

    assert types == [t.LongType(), t.LongType()]
    assert feed.read() == [[7]]


def test_integer_ids_added_before_the_first_micro_batch_require_a_restart(spark, registry, tmp_path):
    registry.create("alerts", schema="x double")
    feed = Feed(spark, registry, tmp_path)

    with pytest.raises(
        Exception, match="the first ids of set 'alerts' were added after this pipeline started and are integ"
    ):
        feed.take(concurrently=lambda: registry.add("alerts", 7, "x > 1"))

    assert feed.take() == t.LongType()
    assert feed.read() == [[7], [7]]


def test_a_fixed_version_without_a_type_of_ids_is_refused(registry):
    registry.create("alerts", schema="x double")
    with pytest.raises(
        vd.PipelineError,
        match=r"vs.match cannot use version 0 of set 'alerts': it has never had a query, so the type of its ids .*; "
        r"create the set with registry.create\(..., ids='string'\) or 'integer', or follow a later version",
    ):
        vs.match(registry.follow("alerts", version=0))
    registry.add("alerts", 7, "x > 1")

    assert vs.match(registry.follow("alerts", version=0)) is not None
