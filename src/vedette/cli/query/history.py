"""`vedette query history`."""

from __future__ import annotations

from vedette.cli.option_groups import with_groups
from vedette.cli.query.options import IdArgument
from vedette.cli.query.records import columns_of
from vedette.cli.records import Answer, print_records
from vedette.cli.set_options import ChosenSet, read_id
from vedette.errors import count


@with_groups
def history(query_id: IdArgument, chosen: ChosenSet, answer: Answer) -> str:
    """Show all revisions of a query, oldest first: their text, their versions and why they ended."""
    from vedette.registry.records import query_record

    opened, info = chosen.open()
    revisions = opened.history(info.name, read_id(query_id, info))
    columns = (*columns_of(info), "state", "added", "removed", "created_at", "ended_at", "metadata", "expires_at")
    print_records([query_record(query, info) for query in revisions], columns, answer.form)
    return f"{count(len(revisions), 'revision')} of a query of set {info.name!r}"
