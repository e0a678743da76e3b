"""`vedette set list`."""

from __future__ import annotations

from vedette.cli.option_groups import with_groups
from vedette.cli.records import Answer, print_records
from vedette.cli.set.records import COLUMNS
from vedette.cli.set_options import RegistryOption, open_registry
from vedette.errors import count


@with_groups
def list_(*, registry: RegistryOption = None, answer: Answer) -> str:
    """List the sets with their kinds, schemas and versions."""
    from vedette.registry.records import set_record

    sets = open_registry(registry).sets()
    print_records([set_record(info) for info in sets], COLUMNS, answer.form)
    return count(len(sets), "set")
