"""`vedette set create`."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.options import ZoneOption
from vedette.cli.records import Answer, print_record
from vedette.cli.set.options import NameArgument, SampleOptions, SchemaOptions
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import SchemaError


@with_groups
def create(
    *,
    name: NameArgument,
    kind: Annotated[
        str,
        typer.Option(metavar="KIND", help="match, border, 'window join', 'band join' or 'moving join'"),
    ] = "match",
    schemas: SchemaOptions,
    windows: Annotated[
        str | None,
        typer.Option(metavar="time|rows|any", help="For window joins: the unit of their windows", show_default="any"),
    ] = None,
    dimensions: Annotated[
        int | None, typer.Option(metavar="2|3", help="For moving joins: the dimensions of zones", show_default="2")
    ] = None,
    time_zone: ZoneOption = "UTC",
    ids: Annotated[
        str | None,
        typer.Option(metavar="string|integer", help="The type of the queries' ids", show_default="as the first ids"),
    ] = None,
    guard: SampleOptions,
    registry: RegistryOption = None,
    answer: Answer,
) -> str:
    """Create a set. Add queries with `vedette query add` and `vedette query import`."""
    from vedette.data.schema import Schema
    from vedette.registry.records import set_record

    opened = open_registry(registry, create=True)
    options: dict[str, Any] = {} if schemas.schema is None else {"schema": schemas.schema}
    streams = schemas.by_stream()
    own = inspect.signature(opened.create).parameters.values()
    for taken in streams.keys() & {"self", *(each.name for each in own if each.kind is not each.VAR_KEYWORD)}:
        raise SchemaError(f"{taken!r} cannot be the name of a stream: it is an option; use another name")
    options |= streams
    if windows is not None:
        options["windows"] = windows
    options |= guard.read(None if schemas.schema is None else Schema.parse(schemas.schema))
    opened.create(name, kind=kind, time_zone=time_zone, ids=ids, dimensions=dimensions, **options)
    print_record(set_record(opened.set(name)), answer.form)
    return f"created set {name!r}"
