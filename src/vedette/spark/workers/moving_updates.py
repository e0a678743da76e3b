"""Updates of moving objects on their way through Spark: one set's rows, checked, and in the order of their times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import writable
from vedette.data.ids import take_ids
from vedette.operators.moving_join.motion_rows import SIDES
from vedette.operators.moving_join.rows import AXES, MovingRows


def side_names(n_dims: int) -> list[str]:
    """The columns of sides and speeds, as they travel and in the order that rows of motions have."""
    ends = ("{}_low", "{}_high", "v{}_low", "v{}_high")
    return [end.format(axis) for axis in AXES[:n_dims] for end in ends]


def to_batch(read: MovingRows, n_dims: int) -> pa.RecordBatch:
    """Rows as they travel: the id, the time, whether the object goes, sides and speeds."""
    columns = [read.ids, read.times, read.goes, *read.rows[:, SIDES:].T]
    names = ["id", "time", "removed", *side_names(n_dims)]
    return pa.record_batch(
        [pa.array(np.ascontiguousarray(c) if isinstance(c, np.ndarray) else c) for c in columns], names
    )


@dataclass(frozen=True)
class Updates:
    """Rows of one set in the order of their times; those of one time in the order of arrival."""

    ids: Any  # NDArray[np.int64] or pa.LargeStringArray
    times: NDArray[np.float64]
    goes: NDArray[np.bool_]
    sides: dict[str, NDArray[np.float64]]

    @classmethod
    def empty(cls, n_dims: int) -> Updates:
        none = np.empty(0)
        return cls(np.empty(0, np.int64), none, np.empty(0, np.bool_), dict.fromkeys(side_names(n_dims), none))

    @classmethod
    def read(cls, table: pa.Table) -> Updates:
        """What `to_batch` made."""
        ids, times, goes, *sides = (column.combine_chunks() for column in table.columns)
        taken = cls(
            ids=writable(ids.to_numpy()) if pa.types.is_integer(ids.type) else ids.cast(pa.large_string()),
            times=times.to_numpy(),
            goes=goes.to_numpy(zero_copy_only=False),
            sides={name: each.to_numpy() for name, each in zip(table.schema.names[3:], sides, strict=True)},
        )
        return taken.take(np.argsort(taken.times, kind="stable"))

    def __len__(self) -> int:
        return len(self.times)

    def take(self, places: NDArray[Any]) -> Updates:
        sides = {name: each[places] for name, each in self.sides.items()}
        return Updates(take_ids(self.ids, places), self.times[places], self.goes[places], sides)

    def at(self, time: float) -> dict[str, Any] | None:
        """The rows of one time, as a moving join takes them; None where there are none."""
        start, end = np.searchsorted(self.times, time, "left"), np.searchsorted(self.times, time, "right")
        return self.to_rows(slice(start, end)) if start < end else None

    def to_rows(self, some: slice) -> dict[str, Any]:
        sides = {name: each[some] for name, each in self.sides.items()}
        return {"id": self.ids[some], "removed": self.goes[some], **sides}

    def moved_to(self, time: float) -> Updates:
        """The same objects where their motions have brought them, those earlier than a time.

        What has shrunk to nothing on the way goes.
        """
        if not len(self) or self.times[0] >= time:
            return self
        passed = np.maximum(time - self.times, 0.0)
        sides, goes = dict(self.sides), self.goes.copy()
        for name in sides:
            if not name.startswith("v"):
                sides[name] = self.sides[name] + self.sides[f"v{name}"] * passed
        for name in sides:
            if name.endswith("_low") and not name.startswith("v"):
                goes |= sides[name] > sides[name.replace("_low", "_high")]
        return replace(self, times=np.maximum(self.times, time), goes=goes, sides=sides)
