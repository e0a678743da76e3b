"""Runs a pipeline file on Spark: the session, the sources, the operator, and one Spark query per sink."""

from __future__ import annotations

import functools
import glob
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro, to_avro

from vedette.delivery.dead_letters import LetterPlace
from vedette.errors import FileError
from vedette.pipeline.file import AVAILABLE_NOW
from vedette.pipeline.hosts import remote_setting
from vedette.pipeline.operators import BandJoin, Border, Match, WindowJoin, options_of
from vedette.pipeline.remote import check_remote
from vedette.pipeline.section import spark_duration, spark_value
from vedette.pipeline.source import FILES, LINES, Source, read_avro_schema
from vedette.pipeline.webhook import FORMAT
from vedette.spark.bad_rows import DEAD_LETTER, set_aside
from vedette.spark.band_join import band_join
from vedette.spark.border import border
from vedette.spark.failures import at_option, is_unknown_format
from vedette.spark.java_errors import Py4JJavaError
from vedette.spark.match import match
from vedette.spark.moving_join import moving_join
from vedette.spark.partitions import fit_partitions
from vedette.spark.recent_answers import keep_recent
from vedette.spark.session import session, state_settings
from vedette.spark.webhook import webhook
from vedette.spark.window_join import window_join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.streaming.query import StreamingQuery

    from vedette.pipeline.file import PipelineFile
    from vedette.pipeline.sink import Sink
    from vedette.registry.read.followed import Followed

# Names of counters that Spark observes. The first has one counter per source, as names must be unique in a query.
DECODED, ANSWERED = "vedette_decoded", "vedette_answered"
COUNTED = "vedette_counted"  # what workers count
DELIVERED = "vedette_delivered"  # what a webhook counts
_MALFORMED, _RECORD = "_vedette_malformed", "_vedette_record"
_WRITE_ONLY = ("memory", "noop", "console", FORMAT)  # formats that Spark cannot read


@dataclass(frozen=True)
class Pipeline:
    """A pipeline in a session. Nothing runs until `start`."""

    plan: PipelineFile
    queries: Followed
    spark: SparkSession

    @classmethod
    def open(cls, plan: PipelineFile, queries: Followed) -> Pipeline:
        """The pipeline in a new session with the settings of the file and the time zone of the query set."""
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
            _limit_retries(spark)
        pipeline = cls(plan, queries, spark)
        if not isinstance(plan.operator, Match):
            with at_option("checkpoint"):
                fit_partitions(spark, map(pipeline.checkpoint_of, plan.sink), remote_setting(plan.spark) is None)
        return pipeline

    def rows(self) -> dict[str, DataFrame]:
        """The rows of each stream, as input of the operator."""
        return {
            stream: self._read_source(source, f"sources.{stream}" if stream else "source", self._fields(stream))
            for stream, source in self.plan.streams.items()
        }

    def _read_source(self, source: Source, key: str, fields: str | None) -> DataFrame:
        letters = self._letters_of(key) if source.malformed == DEAD_LETTER else None
        return _read_source(self.spark, source, key, fields, letters)

    def answers(self, rows: Mapping[str, DataFrame], sink: Sink) -> DataFrame:
        """The answers of the operator, for a sink. Its checkpoint, if it exists, fixes the number of shards."""
        operator, queries = self.plan.operator, self.queries
        options = options_of(operator, list(self.plan.streams)) | {"observe": COUNTED}
        with at_option("operator"):
            if isinstance(operator, Match):
                return rows[""].transform(match(queries, **options))
            options["checkpoint"] = self.checkpoint_of(sink)
            if options["on_bad_row"] == DEAD_LETTER:
                options["dead_letters"] = self._letters_of(sink.name)
            if isinstance(operator, Border):
                return rows[""].transform(border(queries, **options))
            if isinstance(operator, WindowJoin):
                return window_join(pairs=queries, frames=dict(rows), **options)
            if isinstance(operator, BandJoin):
                return band_join(rows["left"], rows["right"], queries, **options)
            return moving_join(rows[""], queries, **options)

    def written(self, answers: DataFrame, sink: Sink) -> DataFrame:
        """The answers as a sink writes them. Raises an error if Spark does not know the format or a column."""
        with at_option(f"sink {sink.name!r}", sink.format):
            _check_format(self.spark, sink.format)
        with at_option(f"sink {sink.name!r}", sink.encode):
            counted = answers.observe(ANSWERED, f.count(f.lit(1)).alias("n_answers"))
            if sink.where is not None:
                counted = counted.where(sink.where)
            if self.plan.status.events:
                counted = keep_recent(counted, self.plan.registry.url, self._source_of(sink), self.plan.status.events)
            if sink.select:
                counted = counted.selectExpr(*sink.select)
            frame = counted if sink.encode == "columns" else _encode(counted, sink)
            known = {name.lower() for name in frame.columns}
        for column in sink.partition_by:
            if column.lower() not in known:
                has = ", ".join(frame.columns)
                raise FileError(f"sink {sink.name!r}.partition_by: unknown column {column!r}; columns are: {has}")
        if sink.webhook is not None:
            with at_option(f"sink {sink.name!r}.webhook"):
                options = sink.webhook.model_dump() | {"dead_letters": self.plan.dead_letter_place}
                frame = frame.transform(webhook(**options, name=f"{self.plan.name}:{sink.name}", observe=DELIVERED))
        return frame

    def start(self) -> dict[str, StreamingQuery]:
        """A running Spark query per sink, by its name. If one cannot start, all are stopped."""
        started: dict[str, StreamingQuery] = {}
        rows = self.rows()
        frames = {sink.name: self.written(self.answers(rows, sink), sink) for sink in self.plan.sink}
        try:
            for sink in self.plan.sink:
                with at_option(f"sink {sink.name!r}", sink.format):
                    started[sink.name] = self._writer(frames[sink.name], sink).start()
        except BaseException:
            for query in started.values():
                with suppress(Exception):  # the first error is the one to report
                    query.stop()
            raise
        return started

    def give_up(self) -> None:
        """Do not wait for an unreachable Connect server when this process ends."""
        if self.plan.spark.server is not None:
            self.spark.client.set_retry_policies([])

    def _writer(self, frame: DataFrame, sink: Sink) -> Any:
        form = "noop" if sink.webhook is not None else sink.format  # tasks have sent everything before it is written
        writer = frame.writeStream.format(form).outputMode("append").queryName(f"{self.plan.name}:{sink.name}")
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

    def _source_of(self, sink: Sink) -> tuple[str, str, str]:
        """Whose answers they are: pipeline, set and sink."""
        return self.plan.name, self.plan.registry.set, sink.name

    def _letters_of(self, part: str) -> LetterPlace:
        """The dead letters of a sink or a source."""
        return LetterPlace.read(self.plan.dead_letter_place, f"{self.plan.name}:{part}")

    def checkpoint_of(self, sink: Sink) -> str:
        return f"{self.plan.checkpoint.rstrip('/')}/{sink.name}"

    def _fields(self, stream: str) -> str | None:
        """The fields of a stream in the query set, for sources that declare none."""
        return self.queries.info.schema.get(stream)


def _check_format(spark: SparkSession, form: str) -> None:
    """Raise Spark's error if it does not have the format. Other errors of reading it do not matter."""
    if form in _WRITE_ONLY:
        return
    try:
        _ = spark.read.format(form).load().schema
    except (PySparkException, Py4JJavaError) as error:
        if is_unknown_format(error):
            raise


def _read_source(
    spark: SparkSession, source: Source, key: str, known: str | None, letters: LetterPlace | None
) -> DataFrame:
    """A stream of rows: read, decoded, and reduced to the wanted rows and columns."""
    fields = source.fields or known
    with at_option(key, source.format):
        reader = spark.readStream.format(source.format)
        reader = reader.options(**{name: spark_value(value) for name, value in source.options.items()})
        counts = fields is not None and _counts_malformed(source)
        if counts and fields is not None:
            mode = "FAILFAST" if source.malformed == "fail" else "PERMISSIVE"
            reader = reader.option("mode", mode).option("columnNameOfCorruptRecord", _MALFORMED)
            reader = reader.schema(fields if source.malformed == "fail" else f"{fields}, {_MALFORMED} string")
        elif fields is not None and source.decode == "columns" and (source.fields or source.format in FILES):
            reader = reader.schema(fields)
        rows = reader.load() if source.path is None else reader.load(source.path)
        if counts and source.malformed != "fail":
            rows = _handle_malformed(rows, f.col(_MALFORMED).isNotNull(), source, key, letters).drop(_MALFORMED)
    if source.decode != "columns":
        with at_option(f"{key}.decode", source.decode):
            rows = _decode(rows, source, fields, key, letters)
    for name in ("select", "where"):
        wanted = getattr(source, name)
        if wanted:
            with at_option(f"{key}.{name}"):
                rows = rows.selectExpr(*wanted) if name == "select" else rows.where(wanted)
    if source.watermark is not None:
        with at_option(f"{key}.watermark"):
            rows = rows.withWatermark(source.watermark.column, spark_duration(source.watermark.delay))
    return rows


def _decode(rows: DataFrame, source: Source, fields: str | None, key: str, letters: LetterPlace | None) -> DataFrame:
    """The fields that are encoded in a column, with the columns to keep. Malformed values are counted."""
    encoded = f.expr(source.column)
    mode = {"mode": "FAILFAST" if source.malformed == "fail" else "PERMISSIVE"}
    if source.decode == "json":
        if fields is None:
            raise FileError(f"{key}.schema: it is missing; it is required to decode JSON")
        schema = f"{fields}, {_MALFORMED} string" if mode["mode"] == "PERMISSIVE" else fields
        decoded = f.from_json(encoded.cast("string"), schema, mode | {"columnNameOfCorruptRecord": _MALFORMED})
    else:
        assert source.avro_schema is not None
        decoded = from_avro(encoded, read_avro_schema(source.avro_schema), mode)
    record = encoded.cast("string") if source.decode == "json" else f.base64(encoded)
    rows = rows.select(decoded.alias("decoded"), record.alias(_RECORD), *(f.expr(column) for column in source.keep))
    kept = rows.columns[2:]
    if source.malformed != "fail":
        rows = _handle_malformed(rows, _is_malformed(rows, source.decode), source, key, letters, _RECORD)
    return rows.select("decoded.*", *kept).drop(_MALFORMED)


def _counts_malformed(source: Source) -> bool:
    """Whether Spark parses lines of text into columns, and no option of the source sets the mode."""
    own = {name.lower() for name in source.options} & {"mode", "columnnameofcorruptrecord"}
    return source.decode == "columns" and source.format in LINES and not own


def _handle_malformed(
    rows: DataFrame,
    is_malformed: Column,
    source: Source,
    key: str,
    letters: LetterPlace | None,
    record: str = _MALFORMED,
) -> DataFrame:
    """The rows. Malformed ones are counted, and dropped or kept as dead letters if the source says so."""
    rows = rows.observe(f"{DECODED} {key}", f.count_if(is_malformed).alias("n_malformed"))
    if letters is not None:
        reason = f.when(is_malformed, f.lit("the record cannot be decoded"))
        body = f.when(is_malformed, f.to_json(f.struct(f.col(record).alias("record"))))
        return set_aside(rows, reason, body, letters, letters.source)
    return rows.where(~is_malformed) if source.malformed == "drop" else rows


def _is_malformed(rows: DataFrame, decode: str) -> Column:
    """Whether a row is malformed: for JSON, Spark has a column for it; for Avro, all its fields are null."""
    if decode == "json":
        return f.col("decoded").isNull() | f.col(f"decoded.{_MALFORMED}").isNotNull()
    names = rows.select("decoded.*").columns
    return functools.reduce(lambda some, more: some & more, [f.col("decoded")[name].isNull() for name in names])


def _encode(answers: DataFrame, sink: Sink) -> DataFrame:
    """The answers encoded in a column `value`, with a column `key` if the sink has one."""
    row = f.struct("*")
    if sink.encode == "json":
        value = f.to_json(row)
    else:
        value = to_avro(row, read_avro_schema(sink.avro_schema) if sink.avro_schema is not None else "")
    key = [] if sink.key is None else [f.expr(sink.key).cast("string").alias("key")]
    return answers.select(*key, value.alias("value"))


def _limit_retries(spark: SparkSession) -> None:
    """Report an unreachable Connect server within half a minute; Spark's client would retry for ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]", category=UserWarning)  # also raised as an error
    spark.client.set_retry_policies([DefaultPolicy(max_retries=8, max_backoff=5_000)])  # milliseconds


def _find_jars(patterns: list[str]) -> list[str]:
    """The files that match the patterns. Raises FileError if a pattern matches none."""
    found: list[str] = []
    for pattern in patterns:
        files = [pattern] if "://" in pattern else sorted(glob.glob(str(Path(pattern).expanduser())))
        if not files:
            raise FileError(f"spark.jars: no file matches {pattern!r}")
        found += files
    return found
