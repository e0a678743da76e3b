"""`vedette border`: which queries the keys of a file of rows enter and leave."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.options import (
    OutOption,
    QueriesOption,
    QuietOption,
    RepairOption,
    RowsArgument,
    SchemaOption,
    SkipBadOption,
    SparkOption,
    ZoneOption,
)


def border(
    rows: RowsArgument,
    queries: QueriesOption,
    key: Annotated[
        str, typer.Option("--key", metavar="COLUMN", help="Column with the object's key: a string or a whole number")
    ],
    time: Annotated[
        str, typer.Option("--time", metavar="COLUMN", help="Column with the time: a timestamp or a number")
    ],
    schema: SchemaOption = None,
    out: OutOption = None,
    late: Annotated[
        str, typer.Option("--late", metavar="drop|apply", help="Drop or apply rows older than the last row of the key")
    ] = "drop",
    null_key: Annotated[
        str, typer.Option("--null-key", metavar="error|drop", help="Stop at rows without a key, or drop them")
    ] = "error",
    expire_after: Annotated[
        str | None,
        typer.Option(
            "--expire-after",
            metavar="DURATION",
            help="A key without rows for longer leaves, such as: 10 minutes",
            show_default="never",
        ),
    ] = None,
    dwell: Annotated[
        str | None,
        typer.Option(
            "--dwell",
            metavar="DURATION",
            help="Emit an enter event only after this time inside, such as: 5 minutes",
            show_default="at once",
        ),
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option(
            "--margin",
            metavar="NUMBER",
            help="How far outside a range a key must be to leave: 0.5, or price=0.5 for one field",
            show_default="0",
        ),
    ] = None,
    cross: Annotated[
        bool, typer.Option("--cross", help="Emit enter and exit for a key that crosses a range between two rows")
    ] = False,
    spark: SparkOption = False,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
    repair: RepairOption = False,
    quiet: QuietOption = False,
) -> str:
    """Write an event whenever a key enters or leaves a query: key, time, query, event and reason.

    Rows are processed in the order of the file. At its end, time has passed until the latest row.

    With --spark, rows are processed in time order, so none is late, and events after a key's last row are omitted.
    """
    from vedette.cli.jobs.border import border_files, read_margin
    from vedette.data.durations import number_or_duration
    from vedette.files.queries import QueriesFile

    options = {
        "key": key,
        "time": time,
        "late": late,
        "null_key": null_key,
        "expire_after": number_or_duration(expire_after),
        "dwell": number_or_duration(dwell),
        "margin": read_margin(margin or []),
        "cross": cross,
    }
    source = QueriesFile(queries, time_zone, skip_bad=skip_bad, repair=repair)
    return border_files(rows, source, out, options, schema=schema, spark=spark, quiet=quiet)
