"""Sources of rows: any format that Spark reads as a stream, and how it is decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

import sqlglot
from pydantic import Field, field_validator, model_validator
from sqlglot import exp
from sqlglot.errors import SqlglotError

from vedette.pipeline.section import Duration, Options, Section, Text

FILES = ("csv", "json", "orc", "parquet", "text", "avro", "xml")  # Spark needs a schema to stream these
LINES = ("csv", "json", "xml")  # records of these may be malformed


class Watermark(Section):
    """Spark's watermark: how late rows may be, by a time column."""

    column: Text = Field(description="the column with the time")
    delay: Duration = Field(description="how late rows may be: 10 minutes")


class Source(Section):
    """A stream: read by Spark, decoded, and reduced to the wanted columns and rows, in this order."""

    format: Text = Field(description="a format that Spark reads as a stream: kafka, parquet, json, csv, rate, delta")
    path: Text | None = Field(None, description="the folder or table; the same as the option `path`")
    options: Options = Field(default_factory=dict, description="options of Spark's reader")
    fields: Text | None = Field(None, alias="schema", description="the fields: symbol string, price double")
    decode: Literal["columns", "json", "avro"] = Field(
        "columns", description="where the fields are: in columns, or in one column as JSON or Avro"
    )
    column: Text = Field("value", description="the column with JSON or Avro, or an expression for it")
    avro_schema: Text | None = Field(None, description="the Avro schema, or the name of a file with it")
    malformed: Literal["drop", "null", "fail", "dead-letter"] = Field(
        "drop",
        description="records that cannot be decoded: drop and count them, read their fields as null, fail, or keep "
        "them as dead letters",
    )
    keep: list[Text] = Field(default_factory=list, description="columns to keep besides the decoded ones")
    select: list[Text] = Field(default_factory=list, description="expressions for the columns of the rows")
    where: Text | None = Field(None, description="a condition on rows")
    watermark: Watermark | None = Field(None, description="the column with the time, and how late rows may be")

    @field_validator("fields")
    @classmethod
    def _check_fields(cls, fields: str | None) -> str | None:
        if fields is not None and not _is_readable(fields):
            raise ValueError(f"it is {fields!r}; write: name type, name type, ...")
        return fields

    @model_validator(mode="after")
    def _check_decoding(self) -> Self:
        if self.decode == "avro" and self.avro_schema is None:
            raise ValueError('decode = "avro" needs avro_schema, an Avro schema or the name of a file with it')
        if self.decode != "avro" and self.avro_schema is not None:
            raise ValueError(f'avro_schema is for decode = "avro"; here decode is "{self.decode}"')
        if self.decode == "avro" and self.fields is not None:
            raise ValueError('with decode = "avro" the fields are those of avro_schema; omit schema')
        if self.decode == "columns" and self.keep:
            raise ValueError('keep needs decode = "json" or "avro"; here decode is "columns", which keeps all columns')
        return self


def read_avro_schema(given: str) -> str:
    """An Avro schema, given as text or as the name of a file."""
    if given.lstrip().startswith(("{", "[", '"')):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot read the file {given}: {error.strerror}") from None


def _is_readable(fields: str) -> bool:
    """Whether fields are names with types. Fields with colons are left to Spark, which reads both notations."""
    try:
        table = sqlglot.parse_one(f"CREATE TABLE t ({fields})", dialect="spark").this
    except SqlglotError:
        return False
    return ":" in fields or all(isinstance(field, exp.ColumnDef) for field in table.expressions)
