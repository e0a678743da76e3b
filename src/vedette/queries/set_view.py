"""A query set as one step of an operator sees it: the active queries, and the recently removed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.ids import Ids
from vedette.data.moments import is_virtual, needed_fields
from vedette.queries.attributes import Attributes
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
    attributes: Attributes

    @property
    def first_retained(self) -> int:
        """The number of the first removed query in events."""
        return len(self.ids)

    @property
    def all_fields(self) -> set[str]:
        """The fields that the queries use, including removed ones."""
        return {*self.parts.fields, *needed_fields(self.retained.fields)}

    @property
    def moments(self) -> list[str]:
        """The virtual fields of now() that the queries use, including removed ones."""
        removed = {name for name in self.retained.fields if is_virtual(self.parts.schema, name)}
        return sorted({*self.parts.moments, *removed})

    def number(self, ids: Any) -> NDArray[np.int32]:
        """The number of each id in events, the same for all revisions of the query; or -1."""
        positions = self.ids.find(ids)
        missing = np.flatnonzero(positions < 0)
        if len(missing) and len(self.retained):
            some = ids[missing] if isinstance(ids, np.ndarray) else ids.take(pa.array(missing))
            numbers = self.retained.ids.find(some)
            positions[missing] = np.where(numbers < 0, -1, numbers + self.first_retained)
        return positions

    def is_known(self, queries: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether the query of each number is active or retained."""
        is_known = (queries >= 0) & (queries < self.first_retained)
        is_known[is_known] = ~self.versions.is_removed[queries[is_known]]
        rest = np.flatnonzero((queries >= 0) & ~is_known)
        if len(rest) and len(self.retained):
            numbers = self.retained.ids.find(self.ids_of(queries[rest]))
            removed = self.retained.removed[numbers]
            is_known[rest] = (numbers >= 0) & (removed > self.versions.current - self.retained_versions)
        return is_known

    def ids_of(self, queries: NDArray[np.int32]) -> Any:
        """The ids of these numbers."""
        if not len(self.retained):
            return self.ids.take(queries)
        joined = pa.concat_arrays([self.ids.to_arrow(), self.retained.ids.to_arrow()]).take(pa.array(queries))
        return joined.to_numpy() if pa.types.is_integer(joined.type) else joined
