"""`vedette explain`: which index is used for which queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.options import QueriesOption, QuietOption, RepairOption, SkipBadOption, ZoneOption
from vedette.errors import SchemaError, count


def explain(
    queries: QueriesOption,
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="FIELDS", help="Fields of the rows, such as: symbol string, price double"),
    ] = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="FILE", help="Read the schema from this file of rows")
    ] = None,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
    repair: RepairOption = False,
    quiet: QuietOption = False,
) -> str:
    """Print which index is used for which queries, and why."""
    from vedette.files.queries import QueriesFile
    from vedette.files.rows import RowsFile

    if schema is None and rows is None:
        raise SchemaError(
            "the fields of the queries have no types; give --schema 'name type, ...', or --rows with a file of rows"
        )
    source = QueriesFile(queries, time_zone, skip_bad=skip_bad, repair=repair)
    shown_by = None if schema is not None or rows is None else RowsFile.open(rows, None)
    loaded = source.load(schema or "" if shown_by is None else shown_by.schema, shown_by=shown_by)
    print(loaded.explain())
    return ", ".join([count(len(loaded), "query", "queries"), *source.notes])
