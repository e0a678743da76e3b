"""When the last row of a moving object was, where the join cannot tell: the row came late, or the object is gone.

By these times a row is known to be older than one that was taken before it. What is kept follows the objects that are
late and those that went lately, not all that there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Id = int | str
BYTES = 200  # of an object, about


class LastSeen:
    """Times by id, for the objects of one set."""

    def __init__(self) -> None:
        self._times: dict[Id, float] = {}
        self._gone: set[Id] = set()
        self._changed: set[Id] = set()

    def __len__(self) -> int:
        return len(self._times)

    @property
    def nbytes(self) -> int:
        return BYTES * len(self)

    def find(self, ids: Any) -> NDArray[np.float64]:
        """The time of each of an array of ids; NaN where it is not known here."""
        return self._find(ids.tolist())

    def take(self, ids: Any, times: NDArray[np.float64], goes: NDArray[np.bool_], is_late: NDArray[np.bool_]) -> None:
        """Rows that were taken, in their order."""
        if not len(self) and not goes.any() and not is_late.any():
            return
        columns = (each.tolist() for each in (ids, times, goes, goes | is_late))
        for id_, time, is_gone, is_kept in zip(*columns, strict=True):
            if is_kept:
                self._put(id_, time, is_gone)
            elif id_ in self._times:
                self._forget(id_)

    def forget_gone(self, before: float) -> None:
        """Know nothing any more of objects that went before a time."""
        for each in [id_ for id_ in self._gone if self._times[id_] < before]:
            self._forget(each)

    def to_content(self, only_changes: bool) -> dict[str, Any]:
        """All, or what has changed since this was called last; of what is forgotten the time is NaN."""
        ids = list(self._changed if only_changes else self._times)
        self._changed.clear()
        is_text = bool(ids) and isinstance(ids[0], str)
        return {
            "ids": pa.array(ids, pa.large_string()) if is_text else np.array(ids, np.int64),
            "times": self._find(ids),
            "gone": np.array([each in self._gone for each in ids], np.bool_),
        }

    def apply(self, content: dict[str, Any]) -> None:
        for id_, time, is_gone in zip(*(content[name].tolist() for name in ("ids", "times", "gone")), strict=True):
            if np.isnan(time):
                self._forget(id_)
            else:
                self._put(id_, time, is_gone)
        self._changed.clear()

    def _find(self, ids: Sequence[Id]) -> NDArray[np.float64]:
        return np.array([self._times.get(each, np.nan) for each in ids], np.float64)

    def _put(self, id_: Id, time: float, is_gone: bool) -> None:
        self._times[id_] = time
        (self._gone.add if is_gone else self._gone.discard)(id_)
        self._changed.add(id_)

    def _forget(self, id_: Id) -> None:
        self._times.pop(id_, None)
        self._gone.discard(id_)
        self._changed.add(id_)
