"""`vedette border`: which queries the keys of a file of rows enter and leave."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.options import (
    EventIdOption,
    MetadataOption,
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
            help="How far outside a range a key must be to leave: 0.5, price=0.5 for one field, or 50m on the earth",
            show_default="0",
        ),
    ] = None,
    cross: Annotated[
        bool, typer.Option("--cross", help="Emit enter and exit for a key that crosses a range between two rows")
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help="Write this column of the row that causes an event; several times for several columns",
            show_default="none",
        ),
    ] = None,
    cooldown: Annotated[
        str | None,
        typer.Option(
            "--cooldown",
            metavar="DURATION",
            help="After an enter, hold back events of the key and the query for this time, such as: 1 hour",
            show_default="none",
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Write only the first enter of a key into a query")] = False,
    once_query: Annotated[
        bool, typer.Option("--once-query", help="Write only the first enter of any key into a query")
    ] = False,
    held_back: Annotated[
        bool | None,
        typer.Option(
            "--held-back/--no-held-back",
            help="Write how many events were held back before each",
            show_default="if some can be",
        ),
    ] = None,
    metadata: MetadataOption = None,
    event_id: EventIdOption = None,
    spark: SparkOption = False,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
    repair: RepairOption = False,
    quiet: QuietOption = False,
) -> str:
    """Write an event whenever a key enters or leaves a query: key, time, query, event, reason, and asked columns.

    Rows are processed in the order of the file. At its end, time has passed until the latest row.

    With --spark, rows are processed in time order, so none is late, and events after a key's last row are omitted.
    """
    from vedette.cli.jobs.border import border_files, read_margin
    from vedette.data.durations import number_or_duration
    from vedette.files.queries import QueriesFile
    from vedette.queries.query_options import PER_QUERY

    options = {
        "key": key,
        "time": time,
        "late": late,
        "null_key": null_key,
        "expire_after": number_or_duration(expire_after),
        "dwell": number_or_duration(dwell),
        "margin": read_margin(margin or []),
        "cross": cross,
        "columns": columns or None,
        "event_id": event_id,
        "metadata": metadata or None,
        "cooldown": number_or_duration(cooldown),
        "once": PER_QUERY if once_query else once,
        "held_back": held_back,
    }
    source = QueriesFile(queries, time_zone, skip_bad=skip_bad, repair=repair, takes_options=True)
    return border_files(rows, source, out, options, schema=schema, spark=spark, quiet=quiet)
