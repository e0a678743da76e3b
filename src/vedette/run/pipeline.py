"""A pipeline from its file: the session, the rows of its sources, the operator over them, and a query for each sink."""

from __future__ import annotations

import functools
import glob
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro, to_avro

from vedette.errors import FileError
from vedette.pipeline.file import AVAILABLE_NOW
from vedette.pipeline.hosts import tell_elsewhere
from vedette.pipeline.operators import BandJoin, Border, Match, WindowJoin, options_of
from vedette.pipeline.remote import check_remote
from vedette.pipeline.section import spark_duration, spark_value
from vedette.pipeline.source import FILES, LINES, Source, read_avro_schema
from vedette.spark.band_join import band_join
from vedette.spark.border import border
from vedette.spark.failures import at_option, is_lacking
from vedette.spark.match import match
from vedette.spark.moving_join import moving_join
from vedette.spark.partitions import fit_partitions
from vedette.spark.session import session, state_settings
from vedette.spark.window_join import window_join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from vedette.pipeline.file import PipelineFile
    from vedette.pipeline.sink import Sink
    from vedette.registry.read.followed import Followed

# What Spark counts for us. Of the first there is one for each source, as Spark takes a name once in a query.
DECODED, ANSWERED = "vedette_decoded", "vedette_answered"
_BROKEN = "_vedette_broken"
_OF_WRITERS = ("memory", "noop", "console")  # formats that nobody reads


@dataclass(frozen=True)
class Pipeline:
    """A pipeline in a session: nothing of it runs until `start`."""

    plan: PipelineFile
    queries: Followed
    spark: SparkSession

    @classmethod
    def open(cls, plan: PipelineFile, queries: Followed) -> Pipeline:
        """The pipeline in a new session, which has the settings of the file and the time zone of the query set."""
        settings = {name: spark_value(value) for name, value in plan.spark.settings.items()}
        settings = state_settings() | settings
        if queries.time_zone:
            settings = {"spark.sql.session.timeZone": queries.time_zone} | settings
        if plan.spark.packages:
            settings["spark.jars.packages"] = ",".join(plan.spark.packages)
        if plan.spark.jars:
            settings["spark.jars"] = ",".join(_find_jars(plan.spark.jars))
        server = plan.spark.server
        if server is not None:
            with at_option("spark.remote"):
                check_remote(server)
        part = plan.spark
        with at_option("spark", packages=part.packages):
            spark = session(plan.name, master=part.master, remote=part.remote, log_level=part.log_level, **settings)
        if server is not None:
            _bound_retries(spark)
        pipeline = cls(plan, queries, spark)
        if not isinstance(plan.operator, Match):
            with at_option("checkpoint"):
                fit_partitions(spark, map(pipeline.checkpoint_of, plan.sink), tell_elsewhere(plan.spark) is None)
        return pipeline

    def rows(self) -> dict[str, DataFrame]:
        """The rows of each stream, as the operator gets them."""
        return {
            stream: _read_source(self.spark, source, f"sources.{stream}" if stream else "source", self._fields(stream))
            for stream, source in self.plan.streams.items()
        }

    def answers(self, rows: Mapping[str, DataFrame]) -> DataFrame:
        """What the operator makes of the rows."""
        operator, queries = self.plan.operator, self.queries
        options = options_of(operator, list(self.plan.streams))
        with at_option("operator"):
            if isinstance(operator, Match):
                return rows[""].transform(match(queries, **options))
            if isinstance(operator, Border):
                return rows[""].transform(border(queries, **options))
            if isinstance(operator, WindowJoin):
                return window_join(pairs=queries, frames=dict(rows), **options)
            if isinstance(operator, BandJoin):
                return band_join(rows["left"], rows["right"], queries, **options)
            return moving_join(rows[""], queries, **options)

    def written(self, answers: DataFrame, sink: Sink) -> DataFrame:
        """The answers as a sink writes them; raises where Spark knows no such format or column."""
        with at_option(f"sink {sink.name!r}", sink.format):
            _check_format(self.spark, sink.format)
        with at_option(f"sink {sink.name!r}", sink.encode):
            counted = answers.observe(ANSWERED, f.count(f.lit(1)).alias("n_answers"))
            if sink.where is not None:
                counted = counted.where(sink.where)
            if sink.select:
                counted = counted.selectExpr(*sink.select)
            frame = counted if sink.encode == "columns" else _encode(counted, sink)
            known = {name.lower() for name in frame.columns}
        for column in sink.partition_by:
            if column.lower() not in known:
                has = ", ".join(frame.columns)
                raise FileError(f"sink {sink.name!r}.partition_by: there is no column {column!r}; answers have: {has}")
        return frame

    def start(self) -> dict[str, StreamingQuery]:
        """A running Spark query for each sink, by its name. Where one cannot start, none goes on."""
        started: dict[str, StreamingQuery] = {}
        answers = self.answers(self.rows())
        frames = {sink.name: self.written(answers, sink) for sink in self.plan.sink}
        try:
            for sink in self.plan.sink:
                with at_option(f"sink {sink.name!r}", sink.format):
                    started[sink.name] = self._writer(frames[sink.name], sink).start()
        except BaseException:
            for query in started.values():
                with suppress(Exception):  # why the other could not start is what matters
                    query.stop()
            raise
        return started

    def give_up(self) -> None:
        """Let the end of this process not wait for a Connect server that is gone."""
        if self.plan.spark.server is not None:
            self.spark.client.set_retry_policies([])

    def _writer(self, frame: DataFrame, sink: Sink) -> Any:
        writer = frame.writeStream.format(sink.format).outputMode("append").queryName(f"{self.plan.name}:{sink.name}")
        writer = writer.options(**{name: spark_value(value) for name, value in sink.options.items()})
        if sink.path is not None:
            writer = writer.option("path", sink.path)
        if sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
        if self.plan.trigger == AVAILABLE_NOW:
            writer = writer.trigger(availableNow=True)
        elif self.plan.trigger is not None:
            writer = writer.trigger(processingTime=spark_duration(self.plan.trigger))
        return writer.option("checkpointLocation", self.checkpoint_of(sink))

    def checkpoint_of(self, sink: Sink) -> str:
        return f"{self.plan.checkpoint.rstrip('/')}/{sink.name}"

    def _fields(self, stream: str) -> str | None:
        """The fields of a stream as the query set has them, for sources that declare none."""
        return self.queries.info.schema.get(stream)


def _check_format(spark: SparkSession, form: str) -> None:
    """Raise what Spark says where it has no such format; what else it says of reading it is no matter."""
    if form in _OF_WRITERS:
        return
    try:
        _ = spark.read.format(form).load().schema
    except (PySparkException, Py4JJavaError) as error:
        if is_lacking(error):
            raise


def _read_source(spark: SparkSession, source: Source, key: str, known: str | None) -> DataFrame:
    """A stream of rows: read, decoded, and cut to what is wanted."""
    fields = source.fields or known
    with at_option(key, source.format):
        reader = spark.readStream.format(source.format)
        reader = reader.options(**{name: spark_value(value) for name, value in source.options.items()})
        counts = fields is not None and _counts_malformed(source)
        if counts and fields is not None:
            mode = "FAILFAST" if source.malformed == "fail" else "PERMISSIVE"
            reader = reader.option("mode", mode).option("columnNameOfCorruptRecord", _BROKEN)
            reader = reader.schema(fields if source.malformed == "fail" else f"{fields}, {_BROKEN} string")
        elif fields is not None and source.decode == "columns" and (source.fields or source.format in FILES):
            reader = reader.schema(fields)
        rows = reader.load() if source.path is None else reader.load(source.path)
        if counts and source.malformed != "fail":
            rows = _without_broken(rows, f.col(_BROKEN).isNotNull(), source, key).drop(_BROKEN)
    if source.decode != "columns":
        with at_option(f"{key}.decode", source.decode):
            rows = _decode(rows, source, fields, key)
    for name in ("select", "where"):
        wanted = getattr(source, name)
        if wanted:
            with at_option(f"{key}.{name}"):
                rows = rows.selectExpr(*wanted) if name == "select" else rows.where(wanted)
    if source.watermark is not None:
        with at_option(f"{key}.watermark"):
            rows = rows.withWatermark(source.watermark.column, spark_duration(source.watermark.delay))
    return rows


def _decode(rows: DataFrame, source: Source, fields: str | None, key: str) -> DataFrame:
    """The fields that a column tells, with the columns to keep; what cannot be read is counted."""
    encoded = f.expr(source.column)
    mode = {"mode": "FAILFAST" if source.malformed == "fail" else "PERMISSIVE"}
    if source.decode == "json":
        if fields is None:
            raise FileError(f"{key}.schema: it is missing; JSON is decoded by it")
        told = f"{fields}, {_BROKEN} string" if mode["mode"] == "PERMISSIVE" else fields
        decoded = f.from_json(encoded.cast("string"), told, mode | {"columnNameOfCorruptRecord": _BROKEN})
    else:
        assert source.avro_schema is not None
        decoded = from_avro(encoded, read_avro_schema(source.avro_schema), mode)
    rows = rows.select(decoded.alias("decoded"), *(f.expr(column) for column in source.keep))
    kept = rows.columns[1:]
    if source.malformed != "fail":
        rows = _without_broken(rows, _is_broken(rows, source.decode), source, key)
    return rows.select("decoded.*", *kept).drop(_BROKEN)


def _counts_malformed(source: Source) -> bool:
    """Whether Spark parses lines of text into columns, and the file leaves it to us how."""
    own = {name.lower() for name in source.options} & {"mode", "columnnameofcorruptrecord"}
    return source.decode == "columns" and source.format in LINES and not own


def _without_broken(rows: DataFrame, is_broken: Column, source: Source, key: str) -> DataFrame:
    """The rows, of which those that could not be read are counted, and dropped unless they are to be nulls."""
    rows = rows.observe(f"{DECODED} {key}", f.count_if(is_broken).alias("n_malformed"))
    return rows.where(~is_broken) if source.malformed == "drop" else rows


def _is_broken(rows: DataFrame, decode: str) -> Column:
    """Whether a row could not be decoded: Spark says so for JSON, and tells Avro that it cannot read as nulls alone."""
    if decode == "json":
        return f.col("decoded").isNull() | f.col(f"decoded.{_BROKEN}").isNotNull()
    names = rows.select("decoded.*").columns
    return functools.reduce(lambda some, more: some & more, [f.col("decoded")[name].isNull() for name in names])


def _encode(answers: DataFrame, sink: Sink) -> DataFrame:
    """The answers in a column `value`, beside their key."""
    row = f.struct("*")
    if sink.encode == "json":
        value = f.to_json(row)
    else:
        value = to_avro(row, read_avro_schema(sink.avro_schema) if sink.avro_schema is not None else "")
    key = [] if sink.key is None else [f.expr(sink.key).cast("string").alias("key")]
    return answers.select(*key, value.alias("value"))


def _bound_retries(spark: SparkSession) -> None:
    """Let a Connect server that is gone be told within half a minute, where Spark's client would try for ten."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", category=UserWarning)  # it is an error too
    spark.client.set_retry_policies([DefaultPolicy(max_retries=8, max_backoff=5_000)])  # milliseconds


def _find_jars(patterns: list[str]) -> list[str]:
    """The files that the patterns stand for; raises where one stands for none."""
    found: list[str] = []
    for pattern in patterns:
        files = [pattern] if "://" in pattern else sorted(glob.glob(str(Path(pattern).expanduser())))
        if not files:
            raise FileError(f"spark.jars: there is no file {pattern!r}")
        found += files
    return found
