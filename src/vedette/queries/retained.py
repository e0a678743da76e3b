"""Removed queries that are retained, so that keys that were inside can still leave them.

Border monitoring compares the queries that contained a key's last row with the active queries. A query that was
removed in between is found here, under its own number, for as many versions as the set retains.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.boxes import BoxBlock
from vedette.data.ids import Ids
from vedette.data.schema import Schema
from vedette.language import Residual
from vedette.native.damage import check, check_shape, check_type
from vedette.queries.attributes import Attributes
from vedette.queries.match import Part
from vedette.queries.parts import decompile, join_alike, validate_parts
from vedette.queries.planner import compile_part


class Retained:
    """Removed queries by number: their ids, their boxes, and the versions that added and removed them."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.ids = Ids()
        self.added = np.empty(0, np.int64)
        self.removed = np.empty(0, np.int64)
        self.attributes = Attributes()
        self._blocks: list[BoxBlock] = []
        self._residuals: list[Residual] = []
        self._part: Part | None = None

    def __len__(self) -> int:
        return len(self.added)

    @property
    def part(self) -> Part:
        """The removed queries compiled, under their numbers."""
        if self._part is None:
            self._blocks = join_alike(self._blocks)
            self._part = compile_part(self._blocks, self._residuals, self.schema, 0, len(self))
        return self._part

    @property
    def fields(self) -> set[str]:
        """The fields that the removed queries use."""
        named = [set(block.ranges) for block in self._blocks] + [set(each.fields) for each in self._residuals]
        return set().union(*named)

    def keep(
        self,
        ids: NDArray[np.int64] | pa.LargeStringArray,
        added: NDArray[np.int64],
        removed: NDArray[np.int64],
        blocks: Sequence[BoxBlock],
        residuals: Sequence[Residual],
        attributes: Attributes,
    ) -> None:
        """Remember removed queries; `blocks` and `residuals` number them from 0."""
        first = len(self)
        self.ids.append(ids)
        self.attributes.append(attributes)
        self.added, self.removed = np.concatenate([self.added, added]), np.concatenate([self.removed, removed])
        self._blocks += [BoxBlock(block.queries + first, block.ranges) for block in blocks]
        self._residuals += [dataclasses.replace(each, queries=each.queries + first) for each in residuals]
        self._part = None

    def forget(self, version: int) -> None:
        """Forget queries removed at this version or before. Waits until they are half, so that it is cheap."""
        forgotten = self.removed <= version
        if 2 * np.count_nonzero(forgotten) <= len(self):
            return
        kept = np.flatnonzero(~forgotten)
        ids = self.ids.take(kept)
        blocks = [_renumber(each, forgotten) for each in self._blocks]
        residuals = [_renumber(each, forgotten) for each in self._residuals]
        kind, self.ids = self.ids.kind, Ids()
        self.ids.kind = kind
        self.ids.append(ids)
        self.added, self.removed = self.added[kept], self.removed[kept]
        self.attributes = self.attributes.take(kept)
        self._blocks = [each for each in blocks if len(each)]
        self._residuals = [each for each in residuals if len(each)]
        self._part = None

    def to_parts(self) -> list[Any]:
        """The content for a file."""
        part = self.part if len(self) else None
        return [self.ids.to_parts(), self.added, self.removed, part, self.attributes.to_parts()]

    @classmethod
    def from_parts(
        cls,
        schema: Schema,
        ids: Any,
        added: Any,
        removed: Any,
        part: Part | None,
        attributes: Any = None,
        *,
        is_checked: bool,
    ) -> Retained:
        retained = cls(schema)
        if part is not None:
            retained.ids, retained.added, retained.removed = Ids.from_parts(*ids), added, removed
            retained.attributes = (
                Attributes(len(retained.ids))
                if attributes is None
                else Attributes.from_parts(*attributes, is_checked=is_checked)
            )
            check(len(retained.attributes) == len(retained.ids), "removed queries have no attributes")
            if not is_checked:
                retained.ids.validate()
                for versions in (added, removed):
                    check_type(versions, NDArray[np.int64], "the versions of removed queries")
                    check_shape(versions, (len(retained.ids),), "the versions of removed queries")
                validate_parts([part], schema, len(retained.ids))
            part = part.restored()
            retained._blocks, retained._residuals = decompile(part, np.zeros(len(added), np.bool_))
            retained._part = part
        return retained


def _renumber(each: Any, forgotten: NDArray[np.bool_]) -> Any:
    numbers = np.cumsum(~forgotten) - 1
    taken = each.take(np.flatnonzero(~forgotten[each.queries]))
    return dataclasses.replace(taken, queries=numbers[taken.queries])
