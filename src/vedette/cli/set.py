"""`vedette set`: the query sets of a registry."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.data.schema import Schema
from vedette.errors import PipelineError, SchemaError

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo

set_app = typer.Typer(help="Make, list, alter and drop query sets in a registry.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The set's name", show_default=False)]
COLUMNS = (
    "name",
    "kind",
    "ids",
    "queries",
    "parked",
    "version",
    "schema",
    "time_zone",
    "created_at",
    "max_match_share",
)


@dataclass(frozen=True)
class GivenSchema:
    """A schema: of one stream, or by stream."""

    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="FIELDS", help="Fields of the rows, as in: symbol string, price double"),
    ] = None
    left: Annotated[
        str | None, typer.Option("--left", metavar="FIELDS", help="Of a window join: the left stream's")
    ] = None
    right: Annotated[str | None, typer.Option("--right", metavar="FIELDS", help="And the right one's")] = None
    stream: Annotated[
        list[str] | None,
        typer.Option("--stream", metavar="NAME=FIELDS", help="Fields of a stream of another name; again for each"),
    ] = None

    def by_stream(self) -> dict[str, str]:
        """The schemas by stream."""
        read = {name: fields for name, fields in {"left": self.left, "right": self.right}.items() if fields is not None}
        for text in self.stream or []:
            name, sign, fields = text.partition("=")
            if not sign:
                raise SchemaError(f"--stream takes a name and its fields, as in: a=id bigint, x double; got {text!r}")
            read[name.strip()] = fields.strip()
        return read


@dataclass(frozen=True)
class GivenSample:
    """A sample of rows, and the share of it that a new query may match."""

    max_match_share: Annotated[
        str | None,
        typer.Option(
            "--max-match-share", metavar="SHARE", help="Refuse queries that match more of the sample, as in: 0.5"
        ),
    ] = None
    sample: Annotated[
        Path | None, typer.Option("--sample", metavar="FILE", help="A sample of rows: .csv, .jsonl or .parquet")
    ] = None

    def read(self, schema: Schema | None) -> dict[str, Any]:
        """Both, as a registry takes them; `none` stays a word."""
        from vedette.files.rows import read_sample

        read: dict[str, Any] = {}
        if self.sample is not None:
            if schema is None:
                raise SchemaError("a sample needs a schema; joins have none of their own")
            read["sample"] = read_sample(self.sample, schema)
        if self.max_match_share is not None:
            try:
                read["max_match_share"] = float(self.max_match_share)
            except ValueError:
                read["max_match_share"] = self.max_match_share
        return read


@set_app.command("create")
@with_groups
def create_command(
    *,
    name: NameArgument,
    kind: Annotated[str, typer.Option(help="match, border, 'window join', 'band join' or 'moving join'")] = "match",
    schemas: GivenSchema,
    windows: Annotated[
        str | None, typer.Option(metavar="time|rows|any", help="Of a window join: what its windows are counted in")
    ] = None,
    dimensions: Annotated[
        int | None, typer.Option(metavar="2|3", help="Of a moving join: the dimensions of its zones  [default: 2]")
    ] = None,
    time_zone: Annotated[str, typer.Option(help="Of dates, and of times that name no zone")] = "UTC",
    ids: Annotated[
        str | None,
        typer.Option(metavar="string|integer", help="What the queries' ids are  [default: as the first ones are]"),
    ] = None,
    guard: GivenSample,
    registry: RegistryOption = None,
    answer: Answer,
) -> None:
    """Make a set; queries come with `vedette query add` and `vedette query import`."""
    opened = open_registry(registry, create=True)
    given: dict[str, Any] = {} if schemas.schema is None else {"schema": schemas.schema}
    streams = schemas.by_stream()
    options = inspect.signature(opened.create).parameters.values()
    for taken in streams.keys() & {"self", *(each.name for each in options if each.kind is not each.VAR_KEYWORD)}:
        raise SchemaError(f"a stream cannot be named {taken!r}, which has a meaning of its own; give it another name")
    given |= streams
    if windows is not None:
        given["windows"] = windows
    given |= guard.read(None if schemas.schema is None else Schema.parse(schemas.schema))
    opened.create(name, kind=kind, time_zone=time_zone, ids=ids, dimensions=dimensions, **given)
    print_record(to_record(opened.set(name)), answer.form)


@set_app.command("list")
@with_groups
def list_command(*, registry: RegistryOption = None, answer: Answer) -> None:
    """List the sets with their kinds, schemas and versions."""
    print_records([to_record(info) for info in open_registry(registry).sets()], COLUMNS, answer.form)


@set_app.command("alter")
@with_groups
def alter_command(
    *,
    name: NameArgument,
    schemas: GivenSchema,
    force: Annotated[bool, typer.Option("--force", help="Park the queries that the new schema breaks")] = False,
    guard: GivenSample,
    registry: RegistryOption = None,
    answer: Answer,
) -> None:
    """Give a set another schema; refused, with the list of them, where it breaks queries that stand.

    Or another sample or share for new queries: `--max-match-share none` clears both.
    """
    opened = open_registry(registry)
    schema, streams = schemas.schema, schemas.by_stream()
    changes = guard.read(opened.set(name).read_schema())
    if changes and schema is None and not streams:
        opened.alter(name, **changes)
        print_record(to_record(opened.set(name)), answer.form)
        return
    if changes:
        raise SchemaError("alter the schema first, and then the sample or --max-match-share, in a command of its own")
    if (schema is None) == (not streams):
        raise SchemaError("the new schema is given with --schema, or of a window join by stream: --left, --right")
    opened.alter(name, schema if schema is not None else streams, force=force)
    print_record(to_record(opened.set(name)), answer.form)


@set_app.command("drop")
@with_groups
def drop_command(
    *,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask")] = False,
    registry: RegistryOption = None,
    answer: Answer,
) -> None:
    """Remove a set with all its queries and their history."""
    opened = open_registry(registry)
    info = opened.set(name)
    if not yes:
        _ask(info)
    opened.drop(name)
    print_record({"dropped": name, "queries": info.n_active}, answer.form)


def to_record(info: SetInfo) -> dict[str, Any]:
    """A set as people read it."""
    schema = info.schema.get("", None) if len(info.schema) < 2 else dict(info.schema)
    return {
        "name": info.name,
        "kind": info.kind,
        "ids": info.id_kind,
        "queries": info.n_active,
        "parked": info.n_parked,
        "version": info.version,
        "schema": schema,
        "time_zone": info.time_zone,
        "created_at": info.created_at,
        "max_match_share": info.max_match_share,
    }


def _ask(info: SetInfo) -> None:
    """Raise unless somebody at a terminal says yes."""
    if not sys.stdin.isatty():
        raise PipelineError(f"set {info.name!r} has {info.n_active:,} queries; to drop it, say so with --yes")
    typer.confirm(f"drop set {info.name!r} with {info.n_active:,} queries and their history?", abort=True, err=True)
