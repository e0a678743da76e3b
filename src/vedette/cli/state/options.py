"""Options of `vedette state`."""

from __future__ import annotations

from typing import Annotated

import typer

CheckpointArgument = Annotated[
    str,
    typer.Argument(metavar="CHECKPOINT", help="The folder of the stream's checkpoint", show_default=False),
]
