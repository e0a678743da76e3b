"""`vedette query why`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.options import QuietOption
from vedette.cli.query.options import IdArgument
from vedette.cli.set_options import ChosenSet, read_id


@with_groups
def why(
    query_id: IdArgument,
    chosen: ChosenSet,
    row: Annotated[
        str | None,
        typer.Option(
            "--row", metavar="JSON", help='The row: {"symbol": "IBM", "price": 39.5}; of joins, a row of each stream'
        ),
    ] = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE", help="Or the rows of a file, of which at most 100 are used")
    ] = None,
    now: Annotated[
        str | None,
        typer.Option("--now", metavar="TIME", help="What now() means: 2026-03-02T14:00:00Z", show_default="the clock"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
    quiet: QuietOption = False,
) -> str:
    """Show why a row matches a query of a registry, or does not: each clause with its truth and the row's value."""
    from vedette.cli.jobs.query_why import explain_query

    opened, info = chosen.open()
    return explain_query(opened, info, read_id(query_id, info), row, rows, now, as_json=as_json)
