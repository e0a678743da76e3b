"""`vedette set`: the query sets of a registry."""

from __future__ import annotations

from vedette.cli.command import new_group
from vedette.cli.set.alter import alter
from vedette.cli.set.create import create
from vedette.cli.set.drop import drop
from vedette.cli.set.list import list_

set_app = new_group(
    "set",
    "Create, list, alter and drop query sets in a registry.",
    {"create": create, "list": list_, "alter": alter, "drop": drop},
)
