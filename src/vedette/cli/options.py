"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FROM_ROWS = "the types that the first rows show"
STDOUT = "CSV on standard output"

SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="FIELDS",
        help="Fields of the rows, such as: symbol string, price double, ts timestamp",
        show_default=FROM_ROWS,
    ),
]
QueriesOption = Annotated[
    Path,
    typer.Option(
        "--queries", metavar="FILE", help="Queries with columns id and where: CSV, JSON lines or Parquet; or GeoJSON"
    ),
]
ZoneOption = Annotated[
    str, typer.Option("--time-zone", metavar="ZONE", help="Time zone for dates and for timestamps without one")
]
NowOption = Annotated[
    str | None, typer.Option("--now", metavar="TIME", help="What now() means in queries; by default the clock")
]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Skip invalid queries, and list them")]
RepairOption = Annotated[
    bool, typer.Option("--repair", help="Repair invalid polygons of a GeoJSON file, and list them")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no summary line")]
RowsArgument = Annotated[
    Path, typer.Argument(metavar="ROWS", help="Rows: CSV, JSON lines (.jsonl) or Parquet", show_default=False)
]
OutOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="Output file: .csv, .jsonl or .parquet", show_default=STDOUT),
]
SparkOption = Annotated[bool, typer.Option("--spark", help="Run in a local Spark session")]
MetadataOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="NAME",
        help="Write this field of the query's metadata; several times for several fields",
        show_default="none",
    ),
]
EventIdOption = Annotated[
    bool | None,
    typer.Option(
        "--event-id/--no-event-id",
        help="Write a stable id of each event, or of each pair of a join of queries",
        show_default="with --column or --metadata",
    ),
]


def written_to(out: Path | None) -> str:
    """The part of a summary that names the output file, if there is one."""
    return "" if out is None else f", written to {out}"
