"""Sinks of answers: any format that Spark writes as a stream, or webhooks. Each sink is a separate Spark query."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from vedette.pipeline.section import Options, Section, Text
from vedette.pipeline.webhook import FORMAT, WebhookPart


class Sink(Section):
    """Answers are filtered, selected, encoded and written, in this order."""

    name: Text = Field(
        "",
        description="the name of the sink in progress reports, and of its folder in the checkpoint",
        pattern=r"^[\w.-]+$",
    )
    format: Text = Field(
        description="a format that Spark writes as a stream: kafka, parquet, json, console, delta; or webhook"
    )
    path: Text | None = Field(None, description="the folder or table; the same as the option `path`")
    options: Options = Field(default_factory=dict, description="options of Spark's writer")
    where: Text | None = Field(None, description="a condition on answers")
    select: list[Text] = Field(default_factory=list, description="expressions for the columns to write")
    encode: Literal["columns", "json", "avro"] = Field(
        "columns", description="how answers are written: as columns, or in one column `value` as JSON or Avro"
    )
    avro_schema: Text | None = Field(None, description="the Avro schema to write, or the name of a file with it")
    key: Text | None = Field(None, description="with an encoded value: an expression for the column `key`")
    partition_by: list[Text] = Field(default_factory=list, description="columns that become folders")
    webhook: WebhookPart | None = Field(None, description="for the format webhook: where events are sent, and how")

    @model_validator(mode="after")
    def _check_encoding(self) -> Self:
        if self.key is not None and self.encode == "columns":
            raise ValueError('key needs an encoded value; set encode = "json" or "avro", or select the key')
        if self.avro_schema is not None and self.encode != "avro":
            raise ValueError(f'avro_schema is for encode = "avro"; here encode is "{self.encode}"')
        if self.format == "kafka" and self.encode == "columns" and not self.select:
            raise ValueError('Kafka needs a column `value`; set encode = "json" or "avro", or select it')
        return self

    @model_validator(mode="after")
    def _check_webhook(self) -> Self:
        if (self.format == FORMAT) != (self.webhook is not None):
            found = "the table [sink.webhook] is missing" if self.webhook is None else f'format is "{self.format}"'
            raise ValueError(
                f'a webhook needs format = "webhook" and a table [sink.webhook] with its url; here {found}'
            )
        unused = {"path": self.path, "options": self.options, "key": self.key, "partition_by": self.partition_by}
        given = [name for name, value in unused.items() if value]
        if self.webhook is not None and (given or self.encode != "columns"):
            raise ValueError(f"{(given or ['encode'])[0]} cannot be set for a webhook, which sends JSON; omit the key")
        return self
