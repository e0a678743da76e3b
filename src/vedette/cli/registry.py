"""`vedette registry`: the upkeep of a registry."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.set_options import RegistryOption, open_registry

if TYPE_CHECKING:
    from vedette.registry.read.inspection import SetStats
    from vedette.registry.read.pins import PinnedStream

registry_app = typer.Typer(help="Look after a registry.", no_args_is_help=True)

SetArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[SET]...", help="Only these sets", show_default=False)
]
_PINS = ("set", "stream", "first_batch", "last_batch", "version", "pinned_at")
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


@registry_app.command("pins")
@with_groups
def pins_command(*, sets: SetArgument = None, registry: RegistryOption = None, answer: Answer) -> None:
    """List the streams that follow sets: the batches whose versions are pinned, and the version of the last one.

    The version that a stream has pinned last is kept until `vedette registry unpin` lets it go.
    """
    opened = open_registry(registry)
    wanted: list[str | None] = list(sets) if sets else [None]
    found = [_pin_record(each) for name in wanted for each in opened.pins(name)]
    print_records(found, _PINS, answer.form)


@registry_app.command("unpin")
@with_groups
def unpin_command(
    *,
    stream: Annotated[
        str, typer.Argument(metavar="STREAM", help="The stream's id, as `vedette registry pins` lists it")
    ],
    from_batch: Annotated[
        int | None, typer.Option("--from-batch", metavar="N", help="Only batch N and those after it  [default: all]")
    ] = None,
    set_name: Annotated[str | None, typer.Option("--set", metavar="NAME", help="Only pins of this set")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing")] = False,
    registry: RegistryOption = None,
    answer: Answer,
) -> None:
    """Delete the pins of a stream, which must not run: batches that are repeated see the current version.

    For a checkpoint that was put back or copied, and for a stream that will not start again.
    """
    opened = open_registry(registry)
    n_pins = opened.unpin(stream, from_batch=from_batch, name=set_name, dry_run=dry_run)
    print_record({"stream": stream, "would_delete" if dry_run else "deleted": n_pins}, answer.form)


@registry_app.command("verify")
@with_groups
def verify_command(*, sets: SetArgument = None, registry: RegistryOption = None, answer: Answer) -> None:
    """Check that the tables agree and all texts compile; prints what is wrong, and exits with 1 where something is."""
    opened = open_registry(registry)
    wanted: list[str | None] = list(sets) if sets else [None]
    faults = [fault for name in wanted for fault in opened.verify(name)]
    if faults or answer.form == "json":
        print_records([{"fault": fault} for fault in faults], ("fault",), answer.form)
    if faults:
        raise typer.Exit(1)
    if answer.form != "json":  # whose empty list says it
        print("no faults", file=sys.stderr)


def _pin_record(pinned: PinnedStream) -> dict[str, Any]:
    return {
        "set": pinned.set_name,
        "stream": pinned.stream,
        "first_batch": pinned.first_batch,
        "last_batch": pinned.last_batch,
        "version": pinned.version,
        "pinned_at": pinned.pinned_at,
    }


def _to_record(stats: SetStats) -> dict[str, Any]:
    info = stats.info
    return {
        "set": info.name,
        "kind": info.kind,
        "queries": info.n_active,
        "parked": info.n_parked,
        "remembered": stats.n_remembered,
        "version": info.version,
        "versions": stats.n_versions,
        "pins": stats.n_pins,
        "snapshots": stats.n_snapshots,
        "snapshot_bytes": stats.snapshot_bytes,
    }
