"""Distances as text: `50 m`, `1.5 km`."""

from __future__ import annotations

import re

import numpy as np

from vedette.errors import QueryError, shown
from vedette.language.earth import HALF_EARTH
from vedette.language.geofences import SPHEROID

_UNITS = {"m": 1.0, "metre": 1.0, "metres": 1.0, "km": 1000.0}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
MOST_METRES = HALF_EARTH[SPHEROID]


def is_in_metres(text: str) -> bool:
    """Whether a text has the form of a margin in metres."""
    found = _TEXT.fullmatch(text)
    return found is not None and found[2].lower() in _UNITS


def read_metres(text: str, words: str = "must be a number, numbers by field, or metres such as '50 m'") -> float:
    """A margin such as '50 m' or '1.5 km', in metres. `words` say what it must be."""
    found = _TEXT.fullmatch(text)
    metres = float(found[1]) * _UNITS.get(found[2].lower(), np.nan) if found else np.nan
    if not 0 <= metres <= MOST_METRES:
        raise QueryError(f"{words}; got {shown(text)}", option="margin")
    return metres
