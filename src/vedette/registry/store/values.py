"""The values that both databases can store: valid UTF-8 without NUL, and 64-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np

SMALLEST, LARGEST = -(2**63), 2**63 - 1


def is_text(value: Any) -> bool:
    """Whether the value is a string that a database can store.

    >>> is_text("é"), is_text("a\\0"), is_text("\\ud800"), is_text(5)
    (True, False, False, False)
    """
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: Any) -> bool:
    """Whether the value is an integer that a database can store.

    >>> is_number(5), is_number(2**63), is_number(True), is_number(5.0)
    (True, False, False, False)
    """
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return is_whole and SMALLEST <= int(value) <= LARGEST
