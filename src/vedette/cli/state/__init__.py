"""`vedette state`: the state of a stream in its checkpoint."""

from __future__ import annotations

from vedette.cli.command import new_group
from vedette.cli.state.reshard import reshard
from vedette.cli.state.show import show

state_app = new_group(
    "state",
    "Inspect the state of a stream, and write it with another number of shards.",
    {"show": show, "reshard": reshard},
)
