"""Options that the set commands share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vedette.errors import SchemaError

if TYPE_CHECKING:
    from vedette.data.schema import Schema

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The set's name", show_default=False)]


@dataclass(frozen=True)
class SchemaOptions:
    """A schema: for one stream, or by stream."""

    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="FIELDS", help="Fields of the rows, such as: symbol string, price double"),
    ] = None
    left: Annotated[
        str | None, typer.Option("--left", metavar="FIELDS", help="For window joins: fields of the left stream")
    ] = None
    right: Annotated[
        str | None, typer.Option("--right", metavar="FIELDS", help="For window joins: fields of the right stream")
    ] = None
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", metavar="NAME=FIELDS", help="Fields of a stream with another name; repeat for each"),
    ] = None

    def by_stream(self) -> dict[str, str]:
        """The schemas by stream."""
        read = {name: fields for name, fields in {"left": self.left, "right": self.right}.items() if fields is not None}
        for text in self.stream or []:
            name, sign, fields = text.partition("=")
            if not sign:
                raise SchemaError(f"must be a name and fields, such as: a=id bigint; got {text!r}", option="stream")
            read[name.strip()] = fields.strip()
        return read


@dataclass(frozen=True)
class SampleOptions:
    """A sample of rows, and the share of it that a new query may match."""

    max_match_share: Annotated[
        str | None,
        typer.Option(
            "--max-match-share",
            metavar="SHARE",
            help="Refuse queries that match a larger share of the sample, such as: 0.5",
            show_default="no limit",
        ),
    ] = None
    sample: Annotated[
        Path | None, typer.Option("--sample", metavar="FILE", help="A sample of rows: .csv, .jsonl or .parquet")
    ] = None

    def read(self, schema: Schema | None) -> dict[str, Any]:
        """Both as arguments of the registry; `none` stays a text."""
        from vedette.files.rows import read_sample

        read: dict[str, Any] = {}
        if self.sample is not None:
            if schema is None:
                raise SchemaError("a sample needs a schema; joins have no schema for a sample")
            read["sample"] = read_sample(self.sample, schema)
        if self.max_match_share is not None:
            try:
                read["max_match_share"] = float(self.max_match_share)
            except ValueError:
                read["max_match_share"] = self.max_match_share
        return read
