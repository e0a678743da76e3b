"""`vedette join`: window joins or band joins over files of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vedette.cli.options import (
    FROM_ROWS,
    EventIdOption,
    MetadataOption,
    OutOption,
    QuietOption,
    SkipBadOption,
    SparkOption,
    ZoneOption,
)
from vedette.errors import QueryError

_PANEL = "The same for one stream"


def _one_stream(stream: str, what: str) -> Any:
    return typer.Option(
        metavar=what.upper(), help=f"{what.capitalize()} of the {stream} stream", rich_help_panel=_PANEL
    )


def join(
    left: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Rows of the left stream: CSV, JSON lines (.jsonl) or Parquet"),
    ] = None,
    right: Annotated[Path | None, typer.Option(metavar="FILE", help="Rows of the right stream")] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=FILE", help="Rows of a stream with another name; repeat for each stream"),
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Joins with columns id and where, and a window in within or rows"),
    ] = None,
    bands: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Bands over values, with columns id, low and high")
    ] = None,
    time: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column with the time: a timestamp or a number")
    ] = None,
    id_: Annotated[
        list[str] | None,
        typer.Option(
            "--id", metavar="COLUMN", help="Column with the row's id", show_default="the row's number; for bands, id"
        ),
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column that bands compare", show_default="value"),
    ] = None,
    op: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="For bands: column that says insert or delete",
            show_default="every row inserts a value",
        ),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELDS", help="Fields of the rows, such as: price double, ts timestamp", show_default=FROM_ROWS
        ),
    ] = None,
    left_time: Annotated[str | None, _one_stream("left", "time")] = None,
    right_time: Annotated[str | None, _one_stream("right", "time")] = None,
    left_id: Annotated[str | None, _one_stream("left", "id")] = None,
    right_id: Annotated[str | None, _one_stream("right", "id")] = None,
    left_value: Annotated[str | None, _one_stream("left", "value")] = None,
    right_value: Annotated[str | None, _one_stream("right", "value")] = None,
    left_op: Annotated[str | None, _one_stream("left", "op")] = None,
    right_op: Annotated[str | None, _one_stream("right", "op")] = None,
    left_schema: Annotated[str | None, _one_stream("left", "schema")] = None,
    right_schema: Annotated[str | None, _one_stream("right", "schema")] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(metavar="DURATION", help="Window of joins without one of their own, such as: 10 seconds"),
    ] = None,
    rows: Annotated[
        list[str] | None, typer.Option(metavar="NUMBER", help="Window of such joins as a number of rows: 1000")
    ] = None,
    late: Annotated[
        str, typer.Option(metavar="drop|apply", help="Drop or apply rows older than the last row of the stream")
    ] = "drop",
    report: Annotated[
        str, typer.Option(metavar="pairs|queries", help="For bands: write the pairs, or only the bands that have pairs")
    ] = "pairs",
    known_id: Annotated[
        str, typer.Option(metavar="error|replace", help="For bands: what to do if an id already has a value")
    ] = "error",
    unknown_id: Annotated[
        str, typer.Option(metavar="log|report|error", help="For bands: what to do if a deleted id has no value")
    ] = "log",
    max_state_rows: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="Stop before more rows are kept", show_default="no limit")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help="Write this column of the rows of a pair, or of one stream: left=city; several times for several",
            show_default="none",
        ),
    ] = None,
    metadata: MetadataOption = None,
    event_id: EventIdOption = None,
    out: OutOption = None,
    spark: SparkOption = False,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
    quiet: QuietOption = False,
) -> str:
    """Write the pairs that joins find: the query, for each stream the id of the row, and asked columns.

    A query names fields with their stream: left.symbol = right.symbol AND left.price - right.price > 0.5

    The options --time, --id, --value, --op, --schema, --within, --rows and --column are for all streams, or for one:
    --time right=at

    Rows are processed by time. A row older than the last row of its stream is late.
    """
    from vedette.cli.jobs.band_join import join_bands
    from vedette.cli.jobs.join import join_files
    from vedette.cli.jobs.streams import read_carried, read_options, read_streams

    files = read_streams(left, right, stream or [])
    by_role = read_options(
        list(files),
        time=(time, left_time, right_time),
        id=(id_, left_id, right_id),
        value=(value, left_value, right_value),
        op=(op, left_op, right_op),
        schema=(schema, left_schema, right_schema),
        within=(within, None, None),
        rows=(rows, None, None),
    )
    more: dict[str, Any] = {"time_zone": time_zone, "skip_bad": skip_bad, "spark": spark, "quiet": quiet}
    details = {"columns": read_carried(list(files), columns), "metadata": metadata or None}
    if (queries is None) == (bands is None):
        raise QueryError("a join needs either --queries or --bands; give one of them")
    if bands is not None:
        options = {
            "report": report,
            "known_id": known_id,
            "unknown_id": unknown_id,
            "max_state_rows": max_state_rows,
            **details,
        }
        if event_id is not None:
            raise QueryError("--event-id is for joins of --queries; pairs of bands are changes and have no ids")
        return join_bands(files, bands, out, by_role, options, **more)
    assert queries is not None
    options = {"late": late, "max_state_rows": max_state_rows, "event_id": event_id, **details}
    return join_files(files, queries, out, by_role, options, **more)
