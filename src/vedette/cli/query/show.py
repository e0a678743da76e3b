"""`vedette query show`."""

from __future__ import annotations

from vedette.cli.option_groups import with_groups
from vedette.cli.query.options import IdArgument
from vedette.cli.records import Answer, print_record
from vedette.cli.set_options import ChosenSet, read_id


@with_groups
def show(query_id: IdArgument, chosen: ChosenSet, answer: Answer) -> str:
    """Show one query with all its fields."""
    from vedette.registry.records import query_record

    opened, info = chosen.open()
    print_record(query_record(opened.get(info.name, read_id(query_id, info)), info), answer.form)
    return f"1 query of set {info.name!r}"
