"""`vedette backtest`: what queries, or a change of them, would have done over a history of rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.options import OutOption, QuietOption, SchemaOption, SparkOption, ZoneOption
from vedette.cli.set_options import RegistryOption


@dataclass(frozen=True)
class TestedQueries:
    """The queries of a backtest: a text, a file, or a set of a registry."""

    where: Annotated[
        str | None, typer.Option("--where", metavar="TEXT", help="One query: a condition on the fields of rows")
    ] = None
    queries: Annotated[
        Path | None, typer.Option("--queries", metavar="FILE", help="Or a file of queries, with columns id and where")
    ] = None
    set_name: Annotated[str | None, typer.Option("--set", metavar="NAME", help="Or a set of a registry")] = None
    version: Annotated[
        int | None, typer.Option("--version", metavar="VERSION", help="Version of the set", show_default="the current")
    ] = None
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="TEXT|FILE|VERSION",
            help="The queries after a change: another text, file or version, as the first; compare both",
        ),
    ] = None
    registry: RegistryOption = None


@dataclass(frozen=True)
class EventOptions:
    """The options of events, as in `vedette border`."""

    late: Annotated[
        str, typer.Option("--late", metavar="drop|apply", help="Drop or apply rows older than the last row of the key")
    ] = "drop"
    null_key: Annotated[
        str, typer.Option("--null-key", metavar="error|drop", help="Stop at rows without a key, or drop them")
    ] = "error"
    expire_after: Annotated[
        str | None,
        typer.Option("--expire-after", metavar="DURATION", help="A key without rows for longer leaves: 10 minutes"),
    ] = None
    dwell: Annotated[
        str | None, typer.Option("--dwell", metavar="DURATION", help="Enter events only after this time inside")
    ] = None
    cooldown: Annotated[
        str | None,
        typer.Option("--cooldown", metavar="DURATION", help="Hold back further events of a key for this time"),
    ] = None
    once: Annotated[bool, typer.Option("--once", help="Count only the first enter of a key into a query")] = False
    once_query: Annotated[
        bool, typer.Option("--once-query", help="Count only the first enter of any key into a query")
    ] = False
    margin: Annotated[
        list[str] | None,
        typer.Option("--margin", metavar="NUMBER", help="How far outside a key must be to leave: 0.5, or price=0.5"),
    ] = None


@with_groups
def backtest(
    *,
    rows: Annotated[
        Path, typer.Option("--rows", metavar="FILE", help="History: CSV, JSON lines (.jsonl) or Parquet, in time order")
    ],
    time: Annotated[str, typer.Option("--time", metavar="COLUMN", help="Column with the time: a timestamp")],
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="COLUMN", help="Column with the key of events", show_default="no events"),
    ] = None,
    tested: TestedQueries,
    events: EventOptions,
    schema: SchemaOption = None,
    by: Annotated[str, typer.Option("--by", metavar="query|day|day-query", help="The table that is written")] = "query",
    out: OutOption = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Write a picture of the days and queries (PNG)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print totals, days and the first queries as JSON")] = False,
    spark: SparkOption = False,
    time_zone: ZoneOption = "UTC",
    quiet: QuietOption = False,
) -> str:
    """Count what queries would have done over a history: matches, events, keys and notifications.

    With --against, compare two texts, two files or two versions of a set: what the change adds and takes away.

    Notifications are enter events, without those that --cooldown and --once hold back. Events after the last row of a
    key are not counted.
    """
    from vedette.cli.jobs.backtest import run_backtest

    return run_backtest(
        rows, time, key, tested, events, schema, by, out, picture,
        as_json=as_json, spark=spark, time_zone=time_zone, quiet=quiet,
    )  # fmt: skip
