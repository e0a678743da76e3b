"""`vedette query replace`."""

from __future__ import annotations

from vedette.cli.option_groups import with_groups
from vedette.cli.query.options import QueryOptions
from vedette.cli.records import Answer, print_record
from vedette.cli.set_options import ChosenSet, read_id
from vedette.errors import QueryError


@with_groups
def replace(query: QueryOptions, chosen: ChosenSet, answer: Answer) -> str:
    """Replace an active or parked query. Omitted options keep their values. `--expires-at never` clears the expiry.

    A band needs both --low and --high; -inf and inf mean unbounded.
    """
    opened, info = chosen.open()
    if info.kind == "band join" and (query.low is None) != (query.high is None):
        raise QueryError("a new band needs both --low and --high; -inf and inf mean unbounded")
    version = opened.replace(info.name, read_id(query.query_id, info), **query.read())
    print_record({"set": info.name, "id": query.query_id, "version": version}, answer.form)
    return f"replaced 1 query in set {info.name!r}, version {version}"
