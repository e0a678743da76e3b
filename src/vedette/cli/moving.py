"""`vedette moving`: which objects of two sets that move intersect, and when."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.options import FROM_ROWS, OutOption, QuietOption, SparkOption


def moving(
    a: Annotated[
        Path, typer.Option(metavar="FILE", help="Updates of the objects of set a: CSV, JSON lines (.jsonl) or Parquet")
    ],
    b: Annotated[Path, typer.Option(metavar="FILE", help="Updates of the objects of set b")],
    max_update_interval: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Objects update at least this often: 60 seconds, or a number in the unit of times"
        ),
    ],
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Write the pairs that intersect at this time", show_default="the changes"),
    ] = None,
    overdue: Annotated[
        str | None, typer.Option(metavar="TIME", help="Write the objects that should have updated before this time")
    ] = None,
    static: Annotated[
        str | None,
        typer.Option(metavar="a|b", help="The objects of this set do not update; zones without speeds need no time"),
    ] = None,
    expire_overdue: Annotated[
        bool, typer.Option("--expire-overdue", help="Remove objects that do not update in time from the result")
    ] = False,
    late: Annotated[
        str,
        typer.Option(metavar="apply|drop|error", help="Apply, drop or refuse rows older than the last row processed"),
    ] = "apply",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COLUMN",
            help="Write this column of the rows of both objects, or of one: a=name; several times for several columns",
            show_default="none",
        ),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELDS", help="Types of columns, such as: id string; for one set: a=...", show_default=FROM_ROWS
        ),
    ] = None,
    out: OutOption = None,
    spark: SparkOption = False,
    quiet: QuietOption = False,
) -> str:
    """Write which objects of two sets that move intersect, and when: sign, a, b, start, end, and asked columns.

    An update is a row: id, time, x_low, x_high, y_low, y_high, and the speeds vx_low, vx_high, vy_low, vy_high.

    One column x or vx is enough where both ends are the same; with z there are three dimensions. Where `removed` is
    true, the object is removed.

    An update retracts the intervals that it changes, with sign -1, and emits the new ones, with sign 1.

    Rows are processed by time: a number, or a timestamp, which is converted to seconds since 1970. A file is sorted a
    part at a time, so a row that comes much too late in it is late. In Spark, nothing is late.

    With --at or --overdue, only the last update of each object up to that time counts.
    """
    from vedette.cli.jobs.moving import follow_files
    from vedette.cli.jobs.streams import read_carried, read_options
    from vedette.data.durations import number_or_duration

    interval = number_or_duration(max_update_interval)
    options = {
        "max_update_interval": interval,
        "static": static,
        "expire_overdue": expire_overdue,
        "late": late,
        "columns": read_carried(["a", "b"], columns),
    }
    schemas = read_options(["a", "b"], schema=(schema, None, None))["schema"]
    return follow_files({"a": a, "b": b}, out, schemas, options, at=at, overdue=overdue, spark=spark, quiet=quiet)
