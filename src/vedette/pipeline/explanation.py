"""The description of a pipeline that `vedette run --dry-run` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from vedette.delivery.urls import host_of
from vedette.errors import count
from vedette.pipeline.hosts import without_token
from vedette.pipeline.section import Options, spark_value

if TYPE_CHECKING:
    from vedette.pipeline.file import PipelineFile
    from vedette.pipeline.sink import Sink
    from vedette.pipeline.source import Source
    from vedette.pipeline.webhook import WebhookPart

_WIDTH = 10


def explain(
    plan: PipelineFile,
    queries: str,
    rows: Mapping[str, str],
    answers: str,
    index: Sequence[str] = (),
) -> str:
    """The plan as text. `queries` describes the set, `rows` and `answers` the columns, `index` the index."""
    lines = [f"pipeline {plan.name}"]
    for stream, source in plan.streams.items():
        lines += _block(f"source {stream}".strip(), [_describe_source(source), f"rows: {rows[stream]}"])
    lines += _block("queries", [queries, *index])
    lines += _block("operator", [_describe_operator(plan), f"answers: {answers}"])
    for sink in plan.sink:
        where = f"checkpoint {plan.checkpoint.rstrip('/')}/{sink.name}"
        lines += _block(f"sink {sink.name}", [*_describe_sink(sink), where])
    lines += _block("trigger", [_describe_trigger(plan.trigger)])
    lines += _block(
        "spark",
        [without_token(plan.spark.remote or plan.spark.master or "local[*]"), *_describe_options(plan.spark.settings)],
    )
    if len(plan.sink) > 1:
        lines.append(
            f"  {count(len(plan.sink), 'sink')}: each is a separate Spark query, which reads and answers alone"
        )
    return "\n".join(lines)


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f"  {title if number == 0 else '':{_WIDTH}} {line}"


def _describe_source(source: Source) -> str:
    parts = [source.format, *([source.path] if source.path else []), *_describe_options(source.options)]
    if source.decode != "columns":
        parts.append(f"{source.decode.upper()} in {source.column}; malformed: {source.malformed}")
    if source.where is not None:
        parts.append(f"where {source.where}")
    if source.watermark is not None:
        parts.append(f"watermark on {source.watermark.column} with delay {source.watermark.delay}")
    return ", ".join(parts)


def _describe_operator(plan: PipelineFile) -> str:
    given = {name: value for name, value in plan.operator if name in plan.operator.model_fields_set and name != "kind"}
    return ", ".join([plan.operator.kind, *(f"{name}={value!r}" for name, value in given.items())])


def _describe_sink(sink: Sink) -> Iterator[str]:
    if sink.webhook is not None:
        yield _describe_webhook(sink.webhook)
    else:
        yield ", ".join([sink.format, *([sink.path] if sink.path else []), *_describe_options(sink.options)])
    if sink.where is not None:
        yield f"where {sink.where}"
    if sink.select:
        yield f"select {', '.join(sink.select)}"
    if sink.encode != "columns":
        yield f"as {sink.encode.upper()} in value" + (f", with key {sink.key}" if sink.key else "")


def _describe_webhook(part: WebhookPart) -> str:
    where = f"the URL in {part.url_column}" if part.url is None else host_of(part.url)
    parts = [f"webhook at {where}", *([f"grouped by {part.group_by}"] if part.group_by else [])]
    return ", ".join([*parts, "not signed" if part.secret_env is None and part.secret_file is None else "signed"])


def _describe_trigger(trigger: str | None) -> str:
    if trigger is None:
        return "a micro-batch as soon as rows arrive and the previous one has ended"
    return "all available rows, then stop" if trigger == "available now" else f"a micro-batch every {trigger}"


def _describe_options(options: Options) -> list[str]:
    return [f"{name}={spark_value(value)}" for name, value in options.items()]
