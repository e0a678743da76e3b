"""`vedette registry`: the upkeep of a registry."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.which_set import RegistryOption, open_registry

if TYPE_CHECKING:
    from vedette.registry.inspection import SetStats

registry_app = typer.Typer(help="Look after a registry.", no_args_is_help=True)

SetArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[SET]...", help="Only these sets", show_default=False)
]
_STATS = (
    "set",
    "kind",
    "queries",
    "parked",
    "remembered",
    "version",
    "versions",
    "pins",
    "snapshots",
    "snapshot_bytes",
)


@registry_app.command("compact")
@with_groups
def compact_command(*, sets: SetArgument = None, registry: RegistryOption = None, answer: Answer) -> None:
    """Write a new snapshot of each set, so that workers load fast."""
    opened = open_registry(registry)
    done = []
    for info in [opened.set(name) for name in sets] if sets else opened.sets():
        made = opened.compact(info.name)
        done.append({"set": info.name, "version": made.version, "bytes": made.n_bytes, "file": made.file})
    print_records(done, ("set", "version", "bytes", "file"), answer.form)


@registry_app.command("stats")
@with_groups
def stats_command(*, registry: RegistryOption = None, answer: Answer) -> None:
    """Tell how large the registry is: by set its queries, versions, pins and snapshots."""
    stats = open_registry(registry).stats()
    sets = [_to_record(each) for each in stats.sets]
    whole = {"database": stats.database, "bytes": stats.database_bytes}
    if answer.form == "json":
        print_record({**whole, "sets": sets}, answer.form)
        return
    print_records(sets, _STATS, answer.form)
    if answer.form == "table":
        print(f"{stats.database}, {stats.database_bytes:,} bytes")


@registry_app.command("verify")
@with_groups
def verify_command(*, sets: SetArgument = None, registry: RegistryOption = None, answer: Answer) -> None:
    """Check that the tables agree and all texts compile; prints what is wrong, and exits with 1 where something is."""
    opened = open_registry(registry)
    wanted: list[str | None] = list(sets) if sets else [None]
    faults = [fault for name in wanted for fault in opened.verify(name)]
    print_records([{"fault": fault} for fault in faults], ("fault",), answer.form)
    if faults:
        raise typer.Exit(1)
    if answer.form != "json":  # whose empty list says it
        print("no faults", file=sys.stderr)


def _to_record(stats: SetStats) -> dict[str, Any]:
    info = stats.info
    return {
        "set": info.name,
        "kind": info.kind,
        "queries": info.n_standing,
        "parked": info.n_parked,
        "remembered": stats.n_remembered,
        "version": info.version,
        "versions": stats.n_versions,
        "pins": stats.n_pins,
        "snapshots": stats.n_snapshots,
        "snapshot_bytes": stats.snapshot_bytes,
    }
