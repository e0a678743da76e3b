"""`vedette query add`."""

from __future__ import annotations

from vedette.cli.option_groups import with_groups
from vedette.cli.query.options import QueryOptions
from vedette.cli.records import Answer, print_record
from vedette.cli.set_options import ChosenSet, read_id


@with_groups
def add(query: QueryOptions, chosen: ChosenSet, answer: Answer) -> str:
    """Add a query. Pipelines that follow the set use it from their next micro-batch on."""
    opened, info = chosen.open()
    version = opened.add(info.name, read_id(query.query_id, info), **query.read())
    print_record({"set": info.name, "id": query.query_id, "version": version}, answer.form)
    return f"added 1 query to set {info.name!r}, version {version}"
