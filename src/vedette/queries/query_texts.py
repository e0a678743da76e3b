"""Reads many query texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import pyarrow as pa

from vedette.errors import QueryError


def as_texts(texts: Any) -> Sequence[str]:
    """Texts as a sequence of strings, in the order of their ids. A single string is refused."""
    if isinstance(texts, (str, bytes, bytearray)):
        raise QueryError("texts must be a sequence of strings; got one string")
    if not isinstance(texts, Iterable) or isinstance(texts, (Mapping, Set)):
        raise QueryError(f"texts must be a sequence of strings; got {type(texts).__name__}")
    return texts.to_pylist() if isinstance(texts, (pa.Array, pa.ChunkedArray)) else list(texts)
