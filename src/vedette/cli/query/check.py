"""`vedette query check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.options import ZoneOption
from vedette.cli.query.inputs import read_text
from vedette.cli.records import Answer, print_record
from vedette.errors import QueryError, count


@with_groups
def check(
    *,
    text: Annotated[
        str | None,
        typer.Argument(
            metavar="[TEXT]",
            help="The query's text, such as: price < 40 AND symbol = 'IBM'; - reads it from standard input",
            show_default=False,
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Read the text from a file")] = None,
    schema: Annotated[
        str, typer.Option("--schema", metavar="FIELDS", help="Fields of the rows, such as: symbol string, price double")
    ],
    time_zone: ZoneOption = "UTC",
    rows: Annotated[
        Path | None,
        typer.Option(
            "--rows", metavar="FILE", help="A sample of rows: warn if the query matches more than a tenth of it"
        ),
    ] = None,
    answer: Answer,
) -> str:
    """Check the text of a query. If it is invalid, print why and exit with code 2."""
    from vedette.files.rows import read_sample
    from vedette.queries.query_set import QuerySet

    read = read_text(text, file)
    if read is None:
        raise QueryError("no text is given; give one, or read it with --file, or with - from standard input")
    queries = QuerySet(schema, time_zone=time_zone)
    sample = None if rows is None else read_sample(rows, queries.schema)
    warnings = queries.check(read, sample=sample)
    if answer.is_asked:
        print_record({"where": read, "warnings": warnings}, answer.form)
    else:
        print("\n".join(f"warning: {warning}" for warning in warnings) or "ok")
    checked = f", checked on {count(sample.num_rows, 'row')}" if sample is not None else ""
    return f"the query is valid, {count(len(warnings), 'warning')}{checked}"
