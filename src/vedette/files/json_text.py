"""JSON of files and options, which may be anything."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes, **options: Any) -> Any:
    """What json.loads gives, which takes the options; ValueError where it cannot be read, however deep it is nested."""
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
