"""`vedette query remove`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.query.inputs import read_ids
from vedette.cli.query.options import ExpectOption
from vedette.cli.records import Answer, print_record
from vedette.cli.set_options import ChosenSet, read_id
from vedette.errors import count


@with_groups
def remove(
    *,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Ids of queries; - reads them from standard input", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Read the ids from a file, one per line")
    ] = None,
    expect_version: ExpectOption = None,
    chosen: ChosenSet,
    answer: Answer,
) -> str:
    """Remove queries. If any id is unknown, none is removed."""
    opened, info = chosen.open()
    read = [read_id(text, info) for text in read_ids(ids or [], file)]
    version = opened.remove_many(info.name, read, expect_version=expect_version)
    print_record({"set": info.name, "removed": len(read), "version": version}, answer.form)
    return f"removed {count(len(read), 'query', 'queries')} from set {info.name!r}, version {version}"
