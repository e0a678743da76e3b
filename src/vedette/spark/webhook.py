"""Delivery of a DataFrame's rows to webhooks: `events.writeStream.foreachBatch(vs.webhook("https://..."))`.

Tasks send the requests, so events do not pass through the driver. `vedette.delivery` does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from vedette import __version__
from vedette.delivery.dead_letters import address_of
from vedette.delivery.options import ATTEMPTS, CONNECTIONS, MAX_EVENTS, TIME_LIMIT, TIMEOUT, WebhookOptions
from vedette.errors import PipelineError, nearest, shown
from vedette.extras import check_extra
from vedette.spark.checks import quoted
from vedette.spark.observation import check_observe, observed, with_report
from vedette.spark.shipping.query_sets import worker_function

if TYPE_CHECKING:
    from pyspark.sql import Observation

    from vedette.registry.registry import Registry

EVENT_ID = "event_id"
_WORKER = "vedette.spark.workers.webhook"
_TEXT, _NUMBER = t.StringType(), t.IntegerType()
_SCHEMA = t.StructType(
    [
        t.StructField("request", _TEXT),
        t.StructField("host", _TEXT),
        t.StructField("group", _TEXT),
        t.StructField("events", _NUMBER),
        t.StructField("attempts", _NUMBER),
        t.StructField("status", _NUMBER),
        t.StructField("outcome", _TEXT),
        t.StructField("reason", _TEXT),
    ]
)
_JSON = {"ignoreNullFields": "false"}


def webhook(
    url: str | None = None,
    *,
    url_column: str | None = None,
    group_by: str | None = None,
    id_column: str | None = None,
    secret_env: str | None = None,
    secret_file: str | Path | None = None,
    dead_letters: str | Path | Registry | None = None,
    allow_addresses: Sequence[str] = (),
    max_events: int = MAX_EVENTS,
    attempts: int = ATTEMPTS,
    timeout: str = TIMEOUT,
    time_limit: str = TIME_LIMIT,
    connections: int = CONNECTIONS,
    tasks: int = 1,
    name: str = "",
    observe: str | Observation | None = None,
) -> Webhook:
    """A sink for `writeStream.foreachBatch` that sends each row as an event: a POST of JSON, signed and retried.

    Events go to `url`, or each to the URL in `url_column`, a column or expression. `group_by` is an expression over the
    columns: only events with the same value are in one request. A request has at most `max_events`, and the requests of
    a group are sent one after the other.

    Every event is delivered at least once. `id_column` (default: `event_id`, if there is such a column) identifies it,
    so that a receiver can drop repetitions; without one, the id is a hash of the row.

    The secret of signatures is in the environment variable `secret_env`, or in the file `secret_file`; it is read here.

    A request is tried up to `attempts` times, each for at most `timeout`; all requests of a micro-batch together have
    `time_limit`. Events that could not be delivered go to `dead_letters`, a folder of Parquet files or a registry,
    under `name`. Without it, the stream fails, and repeats the micro-batch when it starts again.

    Addresses that are not public are refused, unless they or their networks are in `allow_addresses`.

    `tasks` tasks send at the same time, each over at most `connections` connections. See docs/how-to/webhooks.md.
    """
    check_extra("webhook", "vs.webhook")
    if (url is None) == (url_column is None):
        raise PipelineError("one of url and url_column is required: all events go to one URL, or each to its own")
    options = WebhookOptions.read(
        url,
        secret_env=secret_env,
        secret_file=secret_file,
        allow_addresses=allow_addresses,
        max_events=max_events,
        attempts=attempts,
        timeout=timeout,
        time_limit=time_limit,
        connections=connections,
        has_secret_per_group=url_column is not None,
    )
    for option, value in (("url_column", url_column), ("group_by", group_by), ("id_column", id_column)):
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise PipelineError(f"must be a column or an expression; got {shown(value)}", option=option)
    if isinstance(tasks, bool) or not isinstance(tasks, int) or not 1 <= tasks <= 10_000:
        raise PipelineError(f"must be a number from 1 to 10,000; got {shown(tasks)}", option="tasks")
    check_observe(observe)
    place = None if dead_letters is None else address_of(dead_letters)
    return Webhook(options, url_column, group_by, id_column, place, tasks, name, observe)


@dataclass(frozen=True, repr=False)
class Webhook:
    """A function for `foreachBatch`, and a transform: `events.transform(webhook)` is a row per request.

    As a transform, it sends whenever Spark computes its rows. On a stream, the counts of `observe` are then in the
    progress of the stream.
    """

    options: WebhookOptions
    url_column: str | None
    group_by: str | None
    id_column: str | None
    dead_letters: str | None
    tasks: int
    name: str
    observe: Any

    def __call__(self, events: DataFrame, batch_id: int | None = None) -> DataFrame:
        plan = {
            "sender": __version__,
            "options": self.options,
            "dead_letters": self.dead_letters,
            "source": self.name,
            "reports": self.observe is not None,
        }
        packed = self._pack(events)
        packed = packed.repartition(self.tasks, "url", "group") if self.tasks > 1 else packed.repartition(1)
        work = worker_function(_WORKER, "deliver", __version__, plan)
        sent = packed.mapInArrow(work, with_report(_SCHEMA, self.observe))
        outcomes = observed(sent, _SCHEMA.names, self.observe, "webhook")
        if batch_id is not None:
            outcomes.write.format("noop").mode("overwrite").save()
        return outcomes

    def _pack(self, events: DataFrame) -> DataFrame:
        """The columns that workers need: id, url, group and body. Raises PipelineError if a column is unknown."""
        names = {column.lower(): column for column in events.columns}
        url = f.lit(self.options.url) if self.url_column is None else self._read(events, "url_column", self.url_column)
        group = f.lit(None) if self.group_by is None else self._read(events, "group_by", self.group_by)
        given = names.get(EVENT_ID) if self.id_column is None else self.id_column
        sent = [each for each in events.columns if each != self.url_column]
        row = f.to_json(f.struct(*map(quoted, sent)), _JSON)
        content = f.sha2(row, 256)
        id_ = content if given is None else f.coalesce(self._read(events, "id_column", given).cast("string"), content)
        others = [quoted(each) for each in sent if each.lower() != EVENT_ID]
        body = f.to_json(f.struct(id_.alias(EVENT_ID), *map(f.col, others)), _JSON)
        texts = {"id": id_, "url": url.cast("string"), "group": group.cast("string"), "body": body}
        return events.select(*(f.make_valid_utf8(text).alias(name) for name, text in texts.items()))

    def _read(self, events: DataFrame, option: str, text: str) -> Column:
        """An expression over the columns."""
        try:
            _ = events.select(f.expr(text)).schema
        except AnalysisException:
            has = ", ".join(events.columns)
            raise PipelineError(
                f"is {shown(text)}, which is not a column or an expression over the columns; columns are: {has}"
                f"{nearest(text, events.columns)}",
                option=option,
            ) from None
        return f.expr(text)
