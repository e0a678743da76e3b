"""The selections of one stream by number, each with the number of branches that use it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import BoxBlock
from vedette.data.columns import Column
from vedette.data.matches import Matches
from vedette.data.schema import Schema, Type
from vedette.language import Residual
from vedette.native.buffers import grown
from vedette.native.damage import check, check_type
from vedette.operators.window_join.branches import EVERY_ROW
from vedette.operators.window_join.plan import Selections
from vedette.queries.parts import Parts


@dataclass(frozen=True)
class StreamBoxes:
    """The boxes and residuals of a stream's selections, whose numbers take the role of queries."""

    n: int  # selections, including removed ones
    types: dict[str, Type]  # of the fields
    blocks: list[BoxBlock]
    residuals: list[Residual]


BoxesOf = Callable[[int], StreamBoxes]  # by stream


class StreamSelections:
    """Selections. One of them contains every row. A selection is removed when no active branch uses it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.n = 0
        self.n_removed = 0
        self._uses = np.empty(0, np.int32)  # by selection: the number of active branches
        self._is_removed = np.zeros(0, np.bool_)
        self._every_row = EVERY_ROW
        self._parts = Parts(schema, None)

    @property
    def nbytes(self) -> int:
        return self._parts.nbytes + self._uses.nbytes + self._is_removed.nbytes

    @property
    def uses(self) -> NDArray[np.int32]:
        """By selection: how many active branches use it."""
        return self._uses[: self.n]

    @property
    def fields(self) -> list[str]:
        self.compile()
        return self._parts.fields

    @property
    def parts(self) -> Parts:
        self.compile()
        return self._parts

    def append(self, selections: Selections, wanted: NDArray[np.int32]) -> NDArray[np.int32]:
        """Add selections. Branches refer to new ones by numbers from 0 in `wanted`. Returns their final numbers."""
        n_before = self.n
        blocks = selections.blocks
        n_new = selections.n
        if self._every_row == EVERY_ROW and (wanted == EVERY_ROW).any():
            blocks = [*blocks, BoxBlock(np.array([n_new], np.int64), {})]
            self._every_row = n_before + n_new
            n_new += 1
        self._parts.append(blocks, selections.residuals, n_new)
        self.n += n_new
        self._uses = grown(self._uses, n_before, self.n)
        self._is_removed = grown(self._is_removed, n_before, self.n)
        numbers = np.where(wanted == EVERY_ROW, self._every_row, wanted + n_before).astype(np.int32)
        np.add.at(self._uses, numbers, 1)
        return numbers

    def release(self, selections: NDArray[np.int32]) -> None:
        """Note that branches with these selections were removed."""
        np.subtract.at(self._uses, selections, 1)
        unused = np.unique(selections[self._uses[selections] == 0])
        unused = unused[unused != self._every_row]
        if len(unused):
            self._is_removed[unused] = True
            self.n_removed += len(unused)
            self._parts.note_removal()

    def compile(self) -> None:
        self._parts.compile(self._is_removed[: self.n])

    def match(self, columns: dict[str, Column], n_rows: int) -> Matches:
        """The selections that contain each row."""
        self.compile()
        return self._parts.match(columns, n_rows, self._is_removed[: self.n])

    def boxes(self) -> StreamBoxes:
        """The active selections as boxes and residuals."""
        types = {field.name: field.type for field in self.schema}
        return StreamBoxes(self.n, types, *self._parts.extract(~self._is_removed[: self.n]))

    def without_removed(self) -> tuple[StreamSelections, NDArray[np.int32]]:
        """The active selections, and the new number of each."""
        is_removed = self._is_removed[: self.n]
        kept = StreamSelections(self.schema)
        kept._parts = self._parts.without_removed(is_removed)
        kept._uses = self._uses[: self.n][~is_removed].copy()
        kept.n = len(kept._uses)
        kept._is_removed = np.zeros(kept.n, np.bool_)
        moved = (np.cumsum(~is_removed) - 1).astype(np.int32)
        kept._every_row = EVERY_ROW if self._every_row == EVERY_ROW else int(moved[self._every_row])
        return kept, moved

    def to_parts(self) -> list[Any]:
        """The content for a file."""
        self.compile()
        return [self.n, self._uses[: self.n], self._is_removed[: self.n], self._every_row, self._parts.compiled]

    @classmethod
    def from_parts(
        cls, schema: Schema, n: int, uses: Any, is_removed: Any, every_row: int, parts: Any, *, is_checked: bool
    ) -> StreamSelections:
        made = cls(schema)
        if not is_checked:
            check_type(n, int, "the number of selections")
            check_type(uses, NDArray[np.int32], "the uses of selections")
            check_type(is_removed, NDArray[np.bool_], "which selections are removed")
            check(uses.shape == is_removed.shape == (n,), "selections are missing")
            check_type(every_row, int, "the selection of every row")
            check(every_row == EVERY_ROW or 0 <= every_row < n, "the selection of every row is missing")
        made.n, made._uses, made._is_removed, made._every_row = n, uses, is_removed, every_row
        made.n_removed = int(np.count_nonzero(is_removed))
        made._parts = Parts.of(parts, schema, None, is_removed, is_checked=is_checked)
        return made
