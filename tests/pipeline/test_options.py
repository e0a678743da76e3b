"""Options have the same names and defaults in Python, on Spark, in pipeline files and on the command line."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

import vedette as vd
from vedette import spark as vs
from vedette.cli.border import border
from vedette.cli.join import join
from vedette.cli.moving import moving
from vedette.pipeline.operators import BandJoin, Border, MovingJoin, OperatorSection, WindowJoin

# What an operator decides by. Names of columns and files are not among them.
LATE, IDS, EXPIRY = ("late", "null_key"), ("known_id", "unknown_id", "report"), ("expire_after", "expire_overdue")
OPTIONS = (
    *LATE,
    *IDS,
    *EXPIRY,
    "dwell",
    "margin",
    "cross",
    "event_id",
    "columns",
    "metadata",
    "cooldown",
    "once",
    "held_back",
    "max_state_rows",
    "max_update_interval",
    "shards",
    "layout",
)
OPERATORS: dict[str, dict[str, Any]] = {
    "border": {"python": vd.QuerySet.border, "spark": vs.border, "file": Border, "cli": border},
    "window join": {
        "python": vd.JoinQuerySet.window,
        "spark": vs.window_join,
        "file": WindowJoin,
        "cli": join,
    },
    "band join": {
        "python": vd.BandQuerySet.monitor,
        "spark": vs.band_join,
        "file": BandJoin,
        "cli": join,
    },
    "moving join": {
        "python": vd.MovingJoin,
        "zones": vd.ZoneSet.monitor,
        "spark": vs.moving_join,
        "file": MovingJoin,
        "cli": moving,
    },
}
# Where an option is not, and why.
MISSING = {
    "shards": ("python", "zones", "cli"),  # one process has one
    "layout": ("python", "cli"),  # the same
    "metadata": ("cli",),  # of `vedette moving`: two files of objects have no queries
}


def read_options(place: Any) -> dict[str, Any]:
    """The options of a call or of a section of the file, with their defaults; None where one is required."""
    if isinstance(place, type) and issubclass(place, OperatorSection):
        found = {name: field.default for name, field in place.model_fields.items()}
    else:
        found = {name: each.default for name, each in inspect.signature(place).parameters.items()}
    required = (inspect.Parameter.empty, PydanticUndefined)
    return {name: None if value in required else value for name, value in found.items() if name in OPTIONS}


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_option_has_one_default_wherever_it_is(operator: str) -> None:
    places = {place: read_options(call) for place, call in OPERATORS[operator].items()}

    for option in OPTIONS:
        defaults = {place: options[option] for place, options in places.items() if option in options}
        assert len(set(map(repr, defaults.values()))) <= 1, (option, defaults)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_option_is_everywhere_or_it_is_said_why_not(operator: str) -> None:
    places = {place: read_options(call) for place, call in OPERATORS[operator].items()}
    for option in places["spark"]:
        lacking = {place for place, options in places.items() if option not in options}
        assert lacking <= {*MISSING.get(option, ())}, (option, lacking)
