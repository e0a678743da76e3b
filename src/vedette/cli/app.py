"""The commands. Each reads its options, calls the library, and prints."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vedette.cli.option_groups import with_groups
from vedette.cli.query import query_app, read_text
from vedette.cli.records import Answer, print_record
from vedette.cli.registry import registry_app
from vedette.cli.set import set_app
from vedette.errors import PipelineError, QueryError, SchemaError, VedetteError


class _Commands(TyperGroup):
    """All commands. What the library refuses is one message on standard error and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        try:
            answer = super().invoke(ctx)
            if sys.stdout is not None:  # a supervisor may have closed it
                sys.stdout.flush()
            return answer
        except VedetteError as error:
            option = "" if error.option is None else f"--{error.option.replace('_', '-')}"
            print(f"vedette: {error.with_option(option)}", file=sys.stderr)
            raise SystemExit(2) from None
        except KeyboardInterrupt:
            print("vedette: interrupted", file=sys.stderr, flush=True)
            os._exit(130)  # Spark would have much to say about its end
        except BrokenPipeError:  # whoever reads our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
            raise SystemExit(0) from None


app = typer.Typer(
    name="vedette",
    cls=_Commands,
    help="Millions of standing queries over data streams, inside a Spark pipeline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(query_app, name="query")
app.add_typer(set_app, name="set")
app.add_typer(registry_app, name="registry")

SchemaOption = Annotated[
    str | None, typer.Option("--schema", help="Fields of the rows, as in: symbol string, price double, ts timestamp")
]
QueriesOption = Annotated[
    Path, typer.Option("--queries", help="Queries with columns id and where: CSV, JSON lines or Parquet; or GeoJSON")
]
ZoneOption = Annotated[str, typer.Option("--time-zone", help="Of dates, and of times that name no zone")]
SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Leave out queries that are wrong, and count them")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress")]
RowsArgument = Annotated[Path, typer.Argument(help="Rows: CSV, JSON lines (.jsonl) or Parquet", show_default=False)]
OutOption = Annotated[
    Path | None,
    typer.Option("-o", "--output", help="Where to write: .csv, .jsonl or .parquet  [default: CSV on stdout]"),
]

OneStreamOption = Annotated[str | None, typer.Option(rich_help_panel="The same, for one stream")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from vedette import __version__

        print(f"vedette {__version__}")
        raise typer.Exit


@app.callback()
def vedette(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop")
    ] = False,
) -> None:
    pass


@app.command("match")
def match_command(
    rows: RowsArgument,
    queries: QueriesOption,
    schema: SchemaOption = None,
    out: OutOption = None,
    spark: Annotated[bool, typer.Option("--spark", help="Match inside a local Spark session")] = False,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write each row once for every query it matches, with the query's id in a column `query`."""
    from vedette.cli.match import match_files

    match_files(rows, queries, out, schema=schema, time_zone=time_zone, skip_bad=skip_bad, spark=spark, quiet=quiet)


@app.command("border")
def border_command(
    rows: RowsArgument,
    queries: QueriesOption,
    key: Annotated[str, typer.Option("--key", help="Column that names the object: strings or whole numbers")],
    time: Annotated[str, typer.Option("--time", help="Column with the time: a timestamp or a number")],
    schema: SchemaOption = None,
    out: OutOption = None,
    late: Annotated[
        str, typer.Option("--late", metavar="drop|apply", help="Rows older than the key's last: drop, or take them")
    ] = "drop",
    null_key: Annotated[
        str, typer.Option("--null-key", metavar="error|drop", help="Rows without a key: stop, or drop them")
    ] = "error",
    expire_after: Annotated[
        str | None, typer.Option("--expire-after", help="A key silent for longer leaves, as in: 10 minutes")
    ] = None,
    dwell: Annotated[
        str | None, typer.Option("--dwell", help="Report who enters after that long inside, as in: 5 minutes")
    ] = None,
    margin: Annotated[
        list[str] | None,
        typer.Option("--margin", help="How far outside a key must be to leave: 0.5, or price=0.5 for one field"),
    ] = None,
    cross: Annotated[bool, typer.Option("--cross", help="Report who jumps clean through between two rows")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="Watch inside a local Spark session")] = False,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write an event whenever a key enters or leaves a query: key, time, query, event and reason.

    Rows are taken in the order of the file, and at its end time has passed until the latest of them.

    Spark takes rows in time order, so that none is late, and leaves out what is decided only after a key's last row.
    """
    from vedette.cli.border import border_files, read_margin
    from vedette.data.durations import number_or_duration

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
    border_files(
        rows, queries, out, options, schema=schema, time_zone=time_zone, skip_bad=skip_bad, spark=spark, quiet=quiet
    )


@app.command("join")
def join_command(
    left: Annotated[
        Path | None, typer.Option(help="Rows of the left stream: CSV, JSON lines (.jsonl) or Parquet")
    ] = None,
    right: Annotated[Path | None, typer.Option(help="Rows of the right stream")] = None,
    stream: Annotated[
        list[str] | None, typer.Option(metavar="NAME=FILE", help="Rows of a stream of another name; again for each")
    ] = None,
    queries: Annotated[
        Path | None, typer.Option(help="Joins with columns id and where, and their window in within or rows")
    ] = None,
    bands: Annotated[Path | None, typer.Option(help="Or bands over values, with columns id, low and high")] = None,
    time: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column with the time: a timestamp or a number")
    ] = None,
    id_: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="Column with the id; else, the row's number, or for bands 'id'"),
    ] = None,
    value: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Column that bands compare; else, it is 'value'")
    ] = None,
    schema: Annotated[
        list[str] | None, typer.Option(metavar="FIELDS", help="Fields of the rows, as in: price double, ts timestamp")
    ] = None,
    left_time: OneStreamOption = None,
    right_time: OneStreamOption = None,
    left_id: OneStreamOption = None,
    right_id: OneStreamOption = None,
    left_value: OneStreamOption = None,
    right_value: OneStreamOption = None,
    left_schema: OneStreamOption = None,
    right_schema: OneStreamOption = None,
    within: Annotated[
        list[str] | None, typer.Option(metavar="DURATION", help="Window of queries without one, as in: 10 seconds")
    ] = None,
    rows: Annotated[list[str] | None, typer.Option(metavar="NUMBER", help="Or their number of rows: 1000")] = None,
    late: Annotated[
        str, typer.Option(metavar="drop|apply", help="Rows older than the stream's last: drop, or take them")
    ] = "drop",
    report: Annotated[
        str, typer.Option(metavar="pairs|queries", help="Of bands: the pairs, or only the bands that have any")
    ] = "pairs",
    max_state_rows: Annotated[int | None, typer.Option(help="Stop before more rows than these are kept")] = None,
    out: OutOption = None,
    spark: Annotated[bool, typer.Option("--spark", help="Join inside a local Spark session")] = False,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the pairs that standing joins find: the query, and by stream the id of the row.

    A query names fields by their stream, as in: left.symbol = right.symbol AND left.price - right.price > 0.5

    What --time, --id, --value, --schema, --within and --rows say is for all streams, or for one: --time right=at

    Rows are taken by time, as far as each file has them in that order; a row older than its stream's last is late.
    """
    from vedette.cli.band_join import join_bands
    from vedette.cli.join import join_files
    from vedette.cli.streams import read_options, read_streams

    if (queries is None) == (bands is None):
        raise QueryError("a join takes either --queries or --bands; give one of them")
    files = read_streams(left, right, stream or [])
    told = read_options(
        list(files),
        time=(time, left_time, right_time),
        id=(id_, left_id, right_id),
        value=(value, left_value, right_value),
        schema=(schema, left_schema, right_schema),
        within=(within, None, None),
        rows=(rows, None, None),
    )
    given: dict[str, Any] = {"time_zone": time_zone, "skip_bad": skip_bad, "spark": spark, "quiet": quiet}
    if bands is not None:
        join_bands(files, bands, out, told, {"report": report, "max_state_rows": max_state_rows}, **given)
    elif queries is not None:
        join_files(files, queries, out, told, {"late": late, "max_state_rows": max_state_rows}, **given)


@app.command("moving")
def moving_command(
    a: Annotated[Path, typer.Option(help="Updates of the objects of set a: CSV, JSON lines (.jsonl) or Parquet")],
    b: Annotated[Path, typer.Option(help="Updates of the objects of set b")],
    max_update_interval: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Objects update at least this often: 60 seconds, or a number in the unit of times"
        ),
    ],
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Write the pairs that intersect at a time")] = None,
    overdue: Annotated[
        str | None, typer.Option(metavar="TIME", help="Write the objects that should have updated before a time")
    ] = None,
    static: Annotated[
        str | None,
        typer.Option(metavar="a|b", help="The objects of this set need not update: zones, which need no time"),
    ] = None,
    expire_overdue: Annotated[
        bool, typer.Option("--expire-overdue", help="Who does not update in time leaves the result")
    ] = False,
    schema: Annotated[
        list[str] | None, typer.Option(metavar="FIELDS", help="Types of columns, as in: id string; for one: a=...")
    ] = None,
    out: OutOption = None,
    spark: Annotated[bool, typer.Option("--spark", help="Find the changes inside a local Spark session")] = False,
    quiet: QuietOption = False,
) -> None:
    """Write which objects of two sets that move intersect, from when until when: sign, a, b, start and end.

    An update is a row: id, time, x_low, x_high, y_low, y_high, and the speeds vx_low, vx_high, vy_low, vy_high.

    One column x or vx stands for both; with z there are three dimensions; where `removed` is true, the object goes.

    An update takes the intervals that it changes back, with sign -1, and tells the new ones, with sign 1.

    Rows are taken by time, which is a number, or a timestamp: that counts in seconds since 1970.

    With --at or --overdue only the last update of each object until that time counts.
    """
    from vedette.cli.moving import follow_files
    from vedette.cli.streams import read_options
    from vedette.data.durations import number_or_duration

    interval = number_or_duration(max_update_interval)
    options = {"max_update_interval": interval, "static": static, "expire_overdue": expire_overdue}
    schemas = read_options(["a", "b"], schema=(schema, None, None))["schema"]
    follow_files({"a": a, "b": b}, out, schemas, options, at=at, overdue=overdue, spark=spark, quiet=quiet)


@app.command("run")
def run_command(
    file: Annotated[Path, typer.Argument(help="The pipeline's file; `vedette init` writes one", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and explain the plan, and start nothing")] = False,
    log: Annotated[str, typer.Option(metavar="text|json", help="How progress is told on standard error")] = "text",
    metrics: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve figures for Prometheus; on the loopback unless a host is told"),
    ] = None,
    stop_seconds: Annotated[
        float, typer.Option(help="When asked to stop, wait so long for the micro-batch at work", min=0)
    ] = 60,
    quiet: QuietOption = False,
) -> None:
    """Run a pipeline: rows from its source, its set's queries over them, answers to its sinks.

    SIGTERM and Ctrl-C stop it after the micro-batch at work; once more, at once.

    Exit codes: 0 ended or stopped, 2 the file or the set is wrong, 3 failed while running, 4 out of reach or disk full.
    """
    from vedette.cli.run import RunOptions, run_pipeline

    code = run_pipeline(file, RunOptions(dry_run, log, metrics, stop_seconds, quiet))
    if code:
        raise typer.Exit(code)


@app.command("init")
def init_command(
    folder: Annotated[Path, typer.Argument(help="Where to write; made if need be")] = Path("."),
) -> None:
    """Write an example of a pipeline that runs as it is: its file, and a registry with a few alerts."""
    from vedette.pipeline.example import tell_to_add, write_example

    file, database = write_example(folder)
    print(f"wrote {file} and {database}; run it, and stop it with Ctrl-C:\n\n  vedette run {shlex.quote(str(file))}\n")
    print(f"meanwhile, in another terminal, add an alert:\n\n  {tell_to_add(database)}\n")


@app.command("explain")
def explain_command(
    queries: QueriesOption,
    schema: SchemaOption = None,
    rows: Annotated[Path | None, typer.Option("--rows", help="Take the schema from this file of rows")] = None,
    time_zone: ZoneOption = "UTC",
    skip_bad: SkipBadOption = False,
) -> None:
    """Say which index answers for which queries, and why."""
    from vedette.files.queries import load_queries
    from vedette.files.rows import RowsFile

    if schema is None and rows is None:
        raise SchemaError(
            "the queries' fields have no types yet; give --schema 'name type, ...', or --rows with a file of rows"
        )
    given = schema if schema is not None or rows is None else RowsFile.open(rows, None).schema
    shown_by = rows if schema is None else None
    loaded = load_queries(queries, given or "", time_zone, skip_bad=skip_bad, shown_by=shown_by)
    print(loaded.explain())


@query_app.command("check")
@with_groups
def check_command(
    *,
    text: Annotated[
        str | None,
        typer.Argument(
            help="The query's text, as in: price < 40 AND symbol = 'IBM'; - reads it from standard input",
            show_default=False,
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Read the text from a file", show_default=False)] = None,
    schema: Annotated[str, typer.Option("--schema", help="Fields of the rows, as in: symbol string, price double")],
    time_zone: ZoneOption = "UTC",
    rows: Annotated[
        Path | None,
        typer.Option("--rows", help="A sample of rows: warn if the query matches more than a tenth of it"),
    ] = None,
    answer: Answer,
) -> None:
    """Say whether a query's text is right; where not, why, and exit with 2."""
    from vedette.files.rows import read_sample
    from vedette.queries.query_set import QuerySet

    read = read_text(text, file)
    if read is None:
        raise QueryError("no text is given; name it, or read it with --file or - from standard input")
    queries = QuerySet(schema, time_zone=time_zone)
    sample = None if rows is None else read_sample(rows, queries.schema)
    warnings = queries.check(read, sample=sample)
    if answer.is_asked:
        print_record({"where": read, "warnings": warnings}, answer.form)
        return
    for warning in warnings:
        print(f"warning: {warning}")
    if not warnings:
        print("ok")


@app.command("demo")
def demo_command(
    rows: Annotated[int, typer.Option("--rows", help="Ticks of the market", min=1000)] = 2_000_000,
    alerts: Annotated[int, typer.Option("--alerts", help="Standing queries", min=10)] = 100_000,
    seed: Annotated[int, typer.Option("--seed", help="The same seed makes the same market", min=0)] = 7,
    output_dir: Annotated[Path, typer.Option("--output-dir", help="Where the report goes")] = Path("demo-report"),
    quiet: QuietOption = False,
) -> None:
    """Match a made-up market's ticks with its watchers' alerts, in a Spark stream, and look at the outcome."""
    from vedette.cli.demo import Demo

    if not Demo(rows, alerts, seed, output_dir, quiet).run():
        raise PipelineError("the demo's answers differ from Spark's own; see above")
