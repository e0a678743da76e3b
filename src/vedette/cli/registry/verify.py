"""`vedette registry verify`."""

from __future__ import annotations

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_records
from vedette.cli.registry.options import SetsArgument
from vedette.cli.set_options import RegistryOption, open_registry


@with_groups
def verify(*, sets: SetsArgument = None, registry: RegistryOption = None, answer: Answer) -> str:
    """Check that the tables are consistent and all texts compile. Print the faults; if there are any, exit with 1."""
    opened = open_registry(registry)
    wanted: list[str | None] = list(sets) if sets else [None]
    faults = [fault for name in wanted for fault in opened.verify(name)]
    if faults or answer.form == "json":
        print_records([{"fault": fault} for fault in faults], ("fault",), answer.form)
    if faults:
        raise typer.Exit(1)
    return "no faults"
