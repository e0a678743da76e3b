"""`vedette registry stats`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_record, print_records
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import count

if TYPE_CHECKING:
    from vedette.registry.read.inspection import SetStats

_COLUMNS = (
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


@with_groups
def stats(*, registry: RegistryOption = None, answer: Answer) -> str:
    """Print the size of the registry: for each set its queries, versions, pins and snapshots."""
    found = open_registry(registry).stats()
    sets = [_to_record(each) for each in found.sets]
    if answer.form == "json":
        print_record({"database": found.database, "bytes": found.database_bytes, "sets": sets}, answer.form)
    else:
        print_records(sets, _COLUMNS, answer.form)
    return f"{count(len(sets), 'set')} in {found.database}, {found.database_bytes:,} bytes"


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
