"""The texts of queries: read from any container, and kept by position for `why`.

Kept texts are compressed in blocks, because most are alike: a million texts of one shape take about 6 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.errors import QueryError

_IN_BLOCK = 4096


def as_texts(texts: Any) -> Sequence[str]:
    """Texts as a sequence of strings, in the order of their ids. A single string is refused."""
    if isinstance(texts, (str, bytes, bytearray)):
        raise QueryError("texts must be a sequence of strings; got one string")
    if not isinstance(texts, Iterable) or isinstance(texts, (Mapping, Set)):
        raise QueryError(f"texts must be a sequence of strings; got {type(texts).__name__}")
    return texts.to_pylist() if isinstance(texts, (pa.Array, pa.ChunkedArray)) else list(texts)


class QueryTexts:
    """The text of each query by position; None for one that is known by its boxes only, as after loading a file."""

    def __init__(self, n_unknown: int = 0) -> None:
        self._n_unknown = n_unknown  # the first positions
        self._blocks: list[tuple[int, bytes]] = []  # the size as JSON, and the JSON compressed
        self._last: list[str | None] = []

    def __len__(self) -> int:
        return self._n_unknown + _IN_BLOCK * len(self._blocks) + len(self._last)

    @property
    def nbytes(self) -> int:
        return sum(len(block) for _, block in self._blocks) + sum(len(text or "") for text in self._last)

    def append(self, texts: Sequence[str | None]) -> None:
        """Add the texts of queries at the next positions."""
        waiting = self._last + list(texts)
        n_full = len(waiting) // _IN_BLOCK * _IN_BLOCK
        for start in range(0, n_full, _IN_BLOCK):
            written = json.dumps(waiting[start : start + _IN_BLOCK], ensure_ascii=True).encode()
            self._blocks.append((len(written), pa.compress(written, "zstd", asbytes=True)))
        self._last = waiting[n_full:]

    def at(self, position: int) -> str | None:
        """The text of a query."""
        place = position - self._n_unknown
        if place < 0:
            return None
        number, offset = divmod(place, _IN_BLOCK)
        return (self._last if number == len(self._blocks) else self._read(number))[offset]

    def without(self, is_removed: NDArray[np.bool_]) -> QueryTexts:
        """The texts of the other queries, at their new positions."""
        kept = QueryTexts(int(np.count_nonzero(~is_removed[: self._n_unknown])))
        first = self._n_unknown
        for texts in (*map(self._read, range(len(self._blocks))), self._last):
            gone = is_removed[first : first + len(texts)]
            kept.append([text for text, is_gone in zip(texts, gone.tolist(), strict=True) if not is_gone])
            first += len(texts)
        return kept

    def _read(self, number: int) -> list[str | None]:
        size, block = self._blocks[number]
        texts: list[str | None] = json.loads(pa.decompress(block, size, "zstd", asbytes=True))
        return texts
