"""`vedette demo`: a market of ticks against very many alerts, in a Spark stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.options import QuietOption
from vedette.errors import PipelineError


def demo(
    rows: Annotated[int, typer.Option("--rows", metavar="NUMBER", help="Ticks of the market", min=1000)] = 2_000_000,
    alerts: Annotated[int, typer.Option("--alerts", metavar="NUMBER", help="Queries over the ticks", min=10)] = 100_000,
    seed: Annotated[
        int, typer.Option("--seed", metavar="NUMBER", help="The same seed makes the same market", min=0)
    ] = 7,
    output_dir: Annotated[
        Path, typer.Option("--output-dir", metavar="FOLDER", help="Where to write the report")
    ] = Path("demo-report"),
    quiet: QuietOption = False,
) -> str:
    """Match the ticks of an invented market with alerts in a Spark stream, and write a report."""
    from vedette.cli.jobs.demo import Demo

    if not Demo(rows, alerts, seed, output_dir, quiet).run():
        raise PipelineError("the answers of the demo differ from Spark's own; see above")
    return f"{rows:,} rows, {alerts:,} alerts, written to {output_dir}"
