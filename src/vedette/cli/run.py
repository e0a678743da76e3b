"""`vedette run`: run a pipeline from its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.options import QuietOption


def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The pipeline file; `vedette init` writes one", show_default=False)
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and explain the plan, and start nothing")] = False,
    log: Annotated[str, typer.Option(metavar="text|json", help="Format of progress on standard error")] = "text",
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Serve Prometheus metrics; on the loopback interface if no host is given",
            show_default="no metrics",
        ),
    ] = None,
    stop_seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long a stop waits for the current micro-batch", min=0)
    ] = 60,
    quiet: QuietOption = False,
) -> str | None:
    """Run a pipeline: it reads rows from its source, applies its query set and writes answers to its sinks.

    SIGTERM and Ctrl-C stop it after the current micro-batch; a second one stops it at once.

    Exit codes: 0 ended or stopped, 2 invalid file or set, 3 failed while running, 4 unreachable or disk full.
    """
    from vedette.cli.jobs.run import RunOptions, run_pipeline

    code = run_pipeline(file, RunOptions(dry_run, log, metrics, stop_seconds, quiet))
    if code:
        raise typer.Exit(code)
    return f"{file} is valid, nothing was started" if dry_run else None
