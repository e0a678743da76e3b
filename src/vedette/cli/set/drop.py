"""`vedette set drop`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record
from vedette.cli.set.options import NameArgument
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import PipelineError, count

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo


@with_groups
def drop(
    *,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation")] = False,
    registry: RegistryOption = None,
    answer: Answer,
) -> str:
    """Remove a set with all its queries and their history."""
    opened = open_registry(registry)
    info = opened.set(name)
    if not yes:
        _confirm(info)
    opened.drop(name)
    print_record({"dropped": name, "queries": info.n_active}, answer.form)
    return f"dropped set {name!r} with {count(info.n_active, 'query', 'queries')}"


def _confirm(info: SetInfo) -> None:
    """Raise unless the user confirms at a terminal."""
    n_queries = count(info.n_active, "query", "queries")
    if not sys.stdin.isatty():
        raise PipelineError(f"set {info.name!r} has {n_queries}; confirm with --yes to drop it")
    typer.confirm(f"drop set {info.name!r} with {n_queries} and their history?", abort=True, err=True)
