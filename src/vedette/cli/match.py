"""`vedette match`: which queries each row of a file matches."""

from __future__ import annotations

from vedette.cli.options import (
    NowOption,
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


def match(
    rows: RowsArgument,
    queries: QueriesOption,
    schema: SchemaOption = None,
    out: OutOption = None,
    spark: SparkOption = False,
    time_zone: ZoneOption = "UTC",
    now: NowOption = None,
    skip_bad: SkipBadOption = False,
    repair: RepairOption = False,
    quiet: QuietOption = False,
) -> str:
    """Write each row once for every query that it matches, with the query's id in the column `query`."""
    from vedette.cli.jobs.match import match_files
    from vedette.files.queries import QueriesFile

    source = QueriesFile(queries, time_zone, skip_bad=skip_bad, repair=repair)
    return match_files(rows, source, out, schema=schema, spark=spark, now=now, quiet=quiet)
