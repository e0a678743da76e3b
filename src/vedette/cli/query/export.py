"""`vedette query export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.options import written_to
from vedette.cli.records import Answer
from vedette.cli.set_options import ChosenSet
from vedette.errors import count


@with_groups
def export(
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Output file: .csv, .jsonl or .parquet",
            show_default="standard output",
        ),
    ] = None,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Only ids that begin with this text")] = None,
    chosen: ChosenSet,
    answer: Answer,
) -> str:
    """Write all active queries at one version. `vedette query import` reads such a file."""
    from vedette.cli.jobs.query_export import export_queries

    opened, info = chosen.open()
    n_queries = export_queries(opened, info, out, answer, prefix)
    return f"{count(n_queries, 'query', 'queries')} of set {info.name!r}{written_to(out)}"
