"""The axis of the known substrings of a text: which of the strings that queries look for a row contains.

Its cuts are the strings. One pass over a text finds all of them (Aho and Corasick, 1975), for any number of strings.
They are short, so that few can end at one place: the time and memory for a text are proportional to its length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from vedette.data.axes import Axis, build_axis
from vedette.data.boxes import Nulls, Ranges
from vedette.data.columns import Column
from vedette.data.list_axes import ListCells, distinct_cells
from vedette.data.schema import Type
from vedette.data.wrapped_axis import WrappedAxis

LONGEST = 24  # characters of a string that is looked for; of a longer one, these are the first
_WINDOW = 1 << 15  # characters of a text that are searched at once


@dataclass(frozen=True)
class SubstringAxis(WrappedAxis):
    """Cell `2i + 1` is that of rows with cut `i` as a substring. A row has a cell for each of its known substrings."""

    inner: Axis

    @classmethod
    def build(cls, ranges: Sequence[Ranges | Nulls]) -> SubstringAxis:
        """The axis whose cuts are the strings of `ranges`, which are single values."""
        return cls(build_axis(Type("string"), ranges))

    def __reduce__(self) -> tuple[Any, ...]:
        return SubstringAxis, (self.inner,)  # without the automaton

    @cached_property
    def _automaton(self) -> tuple[Any, int]:
        """Finds all strings but the empty one, which is the first; and whether it is there, as 0 or 1."""
        from ahocorasick_rs import AhoCorasick

        strings = [str(string) for string in self.cuts]
        n_empty = int(bool(strings) and not strings[0])
        return AhoCorasick(strings[n_empty:], store_patterns=False), n_empty

    def locate(self, column: Column) -> ListCells:
        automaton, n_empty = self._automaton
        known: dict[str, list[int]] = {}
        lengths = np.zeros(len(column), np.int64)
        cuts: list[int] = []
        texts = column.values.to_pylist()
        for row in range(len(texts)) if column.valid is None else np.flatnonzero(column.valid).tolist():
            found = known.get(texts[row])
            if found is None:
                found = known[texts[row]] = _find(automaton, texts[row], n_empty)
            lengths[row] = len(found)
            cuts += found
        starts = np.concatenate([[0], np.cumsum(lengths)])
        cells = (2 * np.array(cuts, np.int64) + 1).astype(np.int32)
        return distinct_cells(starts, cells, self.n_cells, only_cuts=True)


def _find(automaton: Any, text: str, n_empty: int) -> list[int]:
    """The numbers of the cuts in a text, each once."""
    found = set(range(n_empty))
    for start in range(0, max(len(text), 1), _WINDOW):
        window = text[start : start + _WINDOW + LONGEST]
        found.update(cut + n_empty for cut, _, _ in automaton.find_matches_as_indexes(window, overlapping=True))
    return list(found)
