"""`vedette query`: the queries of a set in a registry."""

from __future__ import annotations

from vedette.cli.command import new_group
from vedette.cli.query.add import add
from vedette.cli.query.check import check
from vedette.cli.query.export import export
from vedette.cli.query.history import history
from vedette.cli.query.import_ import import_
from vedette.cli.query.list import list_
from vedette.cli.query.remove import remove
from vedette.cli.query.replace import replace
from vedette.cli.query.show import show
from vedette.cli.query.why import why

query_app = new_group(
    "query",
    "Check queries; list, add, change and remove them in a registry.",
    {
        "add": add,
        "replace": replace,
        "remove": remove,
        "list": list_,
        "show": show,
        "history": history,
        "import": import_,
        "export": export,
        "check": check,
        "why": why,
    },
)
