"""JSON of files and options, which is not trusted."""

from __future__ import annotations

import json
from typing import Any


def read_json(text: str | bytes, **options: Any) -> Any:
    """The result of json.loads, which gets the options. ValueError if the text is invalid or nested too deeply."""
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
