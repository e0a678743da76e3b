"""`vedette set`: the query sets of a registry."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.which_set import RegistryOption, open_registry
from vedette.errors import PipelineError, SchemaError

if TYPE_CHECKING:
    from vedette.registry.set_info import SetInfo

set_app = typer.Typer(help="Make, list, alter and drop query sets in a registry.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The set's name", show_default=False)]
COLUMNS = ("name", "kind", "ids", "queries", "parked", "version", "schema", "time_zone", "created_at")


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


@set_app.command("create")
@with_groups
def create_command(
    *,
    name: NameArgument,
    kind: Annotated[str, typer.Option(help="match, border, 'window join' or 'band join'")] = "match",
    schemas: GivenSchema,
    windows: Annotated[
        str | None, typer.Option(metavar="time|rows|any", help="Of a window join: what its windows are counted in")
    ] = None,
    time_zone: Annotated[str, typer.Option(help="Of dates, and of times that name no zone")] = "UTC",
    ids: Annotated[
        str | None,
        typer.Option(metavar="string|integer", help="What the queries' ids are  [default: as the first ones are]"),
    ] = None,
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
    opened.create(name, kind=kind, time_zone=time_zone, ids=ids, **given)
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
    registry: RegistryOption = None,
    answer: Answer,
) -> None:
    """Give a set another schema; refused, with the list of them, where it breaks queries that stand."""
    opened = open_registry(registry)
    schema, streams = schemas.schema, schemas.by_stream()
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
    print_record({"dropped": name, "queries": info.n_standing}, answer.form)


def to_record(info: SetInfo) -> dict[str, Any]:
    """A set as people read it."""
    schema = info.schema.get("", None) if len(info.schema) < 2 else dict(info.schema)
    return {
        "name": info.name,
        "kind": info.kind,
        "ids": info.id_kind,
        "queries": info.n_standing,
        "parked": info.n_parked,
        "version": info.version,
        "schema": schema,
        "time_zone": info.time_zone,
        "created_at": info.created_at,
    }


def _ask(info: SetInfo) -> None:
    """Raise unless somebody at a terminal says yes."""
    if not sys.stdin.isatty():
        raise PipelineError(f"set {info.name!r} has {info.n_standing:,} queries; to drop it, say so with --yes")
    typer.confirm(f"drop set {info.name!r} with {info.n_standing:,} queries and their history?", abort=True, err=True)
