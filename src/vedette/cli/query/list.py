"""`vedette query list`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.query.inputs import read_metadata
from vedette.cli.query.records import columns_of
from vedette.cli.records import Answer, print_records
from vedette.cli.set_options import ChosenSet, read_id
from vedette.errors import count


@with_groups
def list_(
    *,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Only ids that begin with this text")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Only queries with this metadata; repeat for each")
    ] = None,
    state: Annotated[
        str, typer.Option(metavar="STATE", help="active, parked (invalid under a new schema), removed or expired")
    ] = "active",
    after: Annotated[str | None, typer.Option(metavar="ID", help="Begin after this id")] = None,
    limit: Annotated[int, typer.Option(metavar="NUMBER", help="List at most this many", min=1)] = 100,
    chosen: ChosenSet,
    answer: Answer,
) -> str:
    """List queries in the order of their ids, one page at a time."""
    from vedette.registry.records import query_record

    opened, info = chosen.open()
    found = opened.list(
        info.name,
        prefix=prefix,
        metadata=read_metadata(metadata) or {},
        state=state,
        after=None if after is None else read_id(after, info),
        limit=limit,
    )
    columns = (*columns_of(info), "metadata", "expires_at", "added")
    print_records([query_record(query, info) for query in found], columns, answer.form)
    if len(found) == limit and answer.form == "table":
        print(f"more queries may follow; list them with --after {found[-1].id}", file=sys.stderr)
    return f"{count(len(found), 'query', 'queries')} of set {info.name!r}"
