"""Options that the registry commands share."""

from __future__ import annotations

from typing import Annotated

import typer

SetsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[SET]...", help="Only these sets", show_default=False)
]
