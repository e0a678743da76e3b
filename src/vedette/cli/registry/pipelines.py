"""`vedette registry pipelines`."""

from __future__ import annotations

from typing import Any

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_records
from vedette.cli.registry.options import SetsArgument
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import count

_COLUMNS = (
    "name", "set", "state", "sink", "batch", "rows_in_total", "rows_per_second", "lag_rows", "lag_seconds", "version",
    "host", "started_at", "seen_at", "error",
)  # fmt: skip


@with_groups
def pipelines(*, sets: SetsArgument = None, registry: RegistryOption = None, answer: Answer) -> str:
    """List the pipelines that `vedette run` runs with sets of this registry, and their progress; one line per sink.

    A pipeline is lost if its process was killed, or has not reached the registry for 30 seconds.
    """
    from vedette.registry.pipelines import list_pipelines

    found = [run for run in list_pipelines(open_registry(registry).database) if not sets or run.set_name in sets]
    records = [run.to_record() for run in found]
    if answer.form == "json":
        print_records(records, (), answer.form)
    else:
        print_records([line for record in records for line in _lines(record)], _COLUMNS, answer.form)
    return count(len(found), "pipeline")


def _lines(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**record, **sink} for sink in record["sinks"]]
