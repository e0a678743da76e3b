"""A query set as one step of an operator sees it: what stands, and what was removed lately."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import Ids
from vedette.queries.parts import Parts
from vedette.queries.retained import Retained
from vedette.queries.versions import Versions


@dataclass(frozen=True)
class SetView:
    """A query set as one step sees it."""

    parts: Parts
    versions: Versions
    ids: Ids
    retained: Retained
    retained_versions: int

    @property
    def first_retained(self) -> int:
        """What removed queries count from in events."""
        return len(self.ids)

    @property
    def all_fields(self) -> set[str]:
        """The fields that the queries use, those that were removed among them."""
        return {*self.parts.fields, *self.retained.fields}

    def number(self, ids: Any) -> NDArray[np.int32]:
        """The one number under which each id is known in events, whatever form of the query is meant; or -1."""
        positions = self.ids.find(ids)
        missing = np.flatnonzero(positions < 0)
        if len(missing) and len(self.retained):
            some = ids[missing] if isinstance(ids, np.ndarray) else ids.take(pa.array(missing))
            numbers = self.retained.ids.find(some)
            positions[missing] = np.where(numbers < 0, -1, numbers + self.first_retained)
        return positions

    def is_known(self, queries: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether the query of each number stands, or was removed lately enough to be known."""
        is_known = (queries >= 0) & (queries < self.first_retained)
        is_known[is_known] = ~self.versions.is_gone[queries[is_known]]
        rest = np.flatnonzero((queries >= 0) & ~is_known)
        if len(rest) and len(self.retained):
            numbers = self.retained.ids.find(self.ids_of(queries[rest]))
            removed = self.retained.removed[numbers]
            is_known[rest] = (numbers >= 0) & (removed > self.versions.current - self.retained_versions)
        return is_known

    def ids_of(self, queries: NDArray[np.int32]) -> Any:
        """The ids behind such numbers."""
        if not len(self.retained):
            return self.ids.take(queries)
        joined = pa.concat_arrays([self.ids.to_arrow(), self.retained.ids.to_arrow()]).take(pa.array(queries))
        return joined.to_numpy() if pa.types.is_integer(joined.type) else joined
