"""`vedette query import`."""

from __future__ import annotations

from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.options import RepairOption, SkipBadOption
from vedette.cli.query.inputs import read_time
from vedette.cli.query.options import ExpiresOption, TtlOption
from vedette.cli.records import Answer, print_record
from vedette.cli.set_options import ChosenSet


@with_groups
def import_(
    *,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="CSV, JSON lines, Parquet or GeoJSON; - reads standard input", show_default=False
        ),
    ],
    form_in: Annotated[str, typer.Option("--format", metavar="csv|jsonl", help="Format of standard input")] = "csv",
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Replace queries whose id exists; they keep what the file does not have"),
    ] = False,
    skip_bad: SkipBadOption = False,
    repair: RepairOption = False,
    expires_at: ExpiresOption = None,
    ttl: TtlOption = None,
    chosen: ChosenSet,
    answer: Answer,
) -> str:
    """Add the queries of a file in one version. If any of them is invalid, none is added.

    The columns are those that `vedette query export` writes. Other columns become metadata.
    """
    from vedette.cli.jobs.query_import import import_queries

    opened, info = chosen.open()
    ends = {"expires_at": read_time(expires_at), "ttl": ttl}
    done = import_queries(opened, info, file, form_in, ends, replace=replace, skip_bad=skip_bad, repair=repair)
    print_record({"set": info.name, **done}, answer.form)
    counts = [f"{done[name]:,} {name}" for name in ("added", "replaced", "skipped", "repaired") if name in done]
    return f"set {info.name!r}: {', '.join(counts)}, version {done['version']}"
