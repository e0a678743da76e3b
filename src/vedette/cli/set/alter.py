"""`vedette set alter`."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record
from vedette.cli.set.options import NameArgument, SampleOptions, SchemaOptions
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import SchemaError


@with_groups
def alter(
    *,
    name: NameArgument,
    schemas: SchemaOptions,
    force: Annotated[
        bool, typer.Option("--force", help="Park the queries that are invalid under the new schema")
    ] = False,
    guard: SampleOptions,
    registry: RegistryOption = None,
    answer: Answer,
) -> str:
    """Change the schema of a set. If active queries are invalid under it, list them and change nothing.

    Or change the sample or the share for new queries: `--max-match-share none` clears both.
    """
    from vedette.registry.records import set_record

    opened = open_registry(registry)
    schema, streams = schemas.schema, schemas.by_stream()
    changes = guard.read(opened.set(name).read_schema())
    has_schema = schema is not None or bool(streams)
    if changes and has_schema:
        raise SchemaError("change the schema first, then the sample or --max-match-share in another command")
    if not changes and (schema is None) == (not streams):
        raise SchemaError("give the new schema with --schema, or for window joins with --left and --right")
    if changes:
        opened.alter(name, **changes)
    else:
        opened.alter(name, schema if schema is not None else streams, force=force)
    info = opened.set(name)
    print_record(set_record(info), answer.form)
    return f"altered set {name!r}, version {info.version}"
