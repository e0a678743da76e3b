"""`vedette init`: write an example of a pipeline."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.options import QuietOption


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder to write to; it is created if it does not exist")
    ] = Path("."),
    quiet: QuietOption = False,
) -> str:
    """Write an example pipeline that runs unchanged: a pipeline file, and a registry with a few alerts."""
    from vedette.pipeline.example import add_command, write_example

    file, database = write_example(folder)
    print(f"run the pipeline, and stop it with Ctrl-C:\n\n  vedette run {shlex.quote(str(file))}\n")
    print(f"meanwhile, in another terminal, add an alert:\n\n  {add_command(database)}\n")
    return f"wrote {file} and {database}"
