"""States as plain content, without monitors and queries: read from a base and its deltas, and moved between shards.

A subclass in each operator's folder knows its fields. `merge` does to content what `apply` of the operator's
MonitorState does to a monitor. The queries are not needed, so a state can be inspected and moved where they are not
known. A monitor validates what it loads, so content is checked here only as far as it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.container import refusing_damage
from vedette.data.ids import Ids
from vedette.errors import SnapshotError
from vedette.native.damage import check
from vedette.operators.state import Content, from_bytes, is_whole, to_bytes

Positions = NDArray[np.int64]
# The rows of a part to take, as positions: from the name of the part and the values that decide the shard of each row.
Choose = Callable[[str, Any], Positions]


class StoredState(ABC):
    """States of one operator."""

    kind: ClassVar[str]  # as in the operator's MonitorState

    def read(self, blobs: Iterable[bytes]) -> Content:
        """The whole state that a base and its deltas describe."""
        with self._refusing_damage():
            contents = (from_bytes(self.kind, blob) for blob in blobs)
            content = next(contents)
            check(is_whole(content), "a base is a delta")
            for delta in contents:
                content = delta if is_whole(delta) else self.merge(content, delta)
            return content

    def divide(self, content: Content, choose: Choose, *, with_counts: bool) -> tuple[bytes, int]:
        """A state of the chosen rows, and their number. Counts of events so far are kept or set to 0."""
        with self._refusing_damage():
            picked = self.pick(content, choose)
            picked = picked if with_counts else self.without_counts(picked)
            return to_bytes(self.kind, picked), sum(self.count_rows(picked).values())

    def join(self, blobs: Sequence[bytes]) -> tuple[bytes, int | None]:
        """One state of all rows of several, and the version of its queries; None if the operator has none."""
        with self._refusing_damage():
            contents = [from_bytes(self.kind, blob) for blob in blobs]
            joined = self.unite(contents) | self._unite_history(contents)
            return to_bytes(self.kind, joined), self.version(joined)

    @staticmethod
    def version(content: Content) -> int | None:
        """The version of the queries that the state belongs to."""
        return None if content["history"] is None else int(content["history"][0])

    def count_rows(self, content: Content) -> dict[str, int]:
        """The number of rows by part."""
        return {name: len(part["ids"]) for name, part in content["parts"].items()}

    @abstractmethod
    def merge(self, content: Content, delta: Content) -> Content:
        """A whole state after a delta."""

    @abstractmethod
    def pick(self, content: Content, choose: Choose) -> Content:
        """The chosen rows of a whole state."""

    @abstractmethod
    def without_counts(self, content: Content) -> Content:
        """The state with all counts of events set to 0."""

    @abstractmethod
    def unite(self, contents: Sequence[Content]) -> Content:
        """All rows of several states of one stream, in which no row is twice."""

    def _unite_history(self, contents: Sequence[Content]) -> Content:
        """The latest version of the queries: a row that was seen at an earlier one says so itself."""
        known = [content["history"] for content in contents if content["history"] is not None]
        return {"history": max(known, key=lambda history: history[0]) if known else None}

    @contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        with refusing_damage(f"the saved {self.kind}", "use another checkpoint"):
            yield


def check_same(contents: Sequence[Content], name: str) -> Any:
    """The value that all states have. Raises SnapshotError if they differ."""
    values = [content[name] for content in contents]
    if any(value != values[0] for value in values):
        raise SnapshotError(
            f"the shards of the checkpoint differ in {name}: {values[0]!r} and "
            f"{next(value for value in values if value != values[0])!r}; run one more micro-batch with rows first"
        )
    return values[0]


# Columns of parts: NumPy arrays and Arrow strings.


def take(values: Any, positions: Positions) -> Any:
    return values[positions] if isinstance(values, np.ndarray) else values.take(pa.array(positions))


def concat(pieces: Sequence[Any]) -> Any:
    """All values. Empty pieces may have another type."""
    filled = [piece for piece in pieces if len(piece)]
    if len(filled) < 2:
        return filled[0] if filled else pieces[0]
    check(len({type(piece) for piece in filled}) == 1, "values have different types")
    return np.concatenate(filled) if isinstance(filled[0], np.ndarray) else pa.concat_arrays(filled)


def is_among(ids: Any, others: Any) -> NDArray[np.bool_]:
    """Which ids are among others."""
    known = Ids()
    known.append(np.unique(others) if isinstance(others, np.ndarray) else others.unique())
    if known.kind is not None and len(ids):
        check(isinstance(ids, np.ndarray) == isinstance(others, np.ndarray), "ids have different types")
    return np.asarray(known.find(ids) >= 0)


def take_column(column: Sequence[Any], positions: Positions) -> list[Any]:
    """Rows of a column, which is its values, and which of them are valid, or None."""
    values, valid = column
    return [take(values, positions), None if valid is None else valid[positions]]


def concat_columns(columns: Sequence[Sequence[Any] | None], lengths: Sequence[int]) -> list[Any]:
    """All rows of a column. A piece that does not have the column is null."""
    like = next(column[0] for column in columns if column is not None)
    pieces = [
        [_nulls(like, n), np.zeros(n, np.bool_)] if column is None else column
        for column, n in zip(columns, lengths, strict=True)
    ]
    if all(valid is None for _, valid in pieces):
        return [concat([values for values, _ in pieces]), None]
    valid = [np.ones(len(values), np.bool_) if valid is None else valid for values, valid in pieces]
    return [concat([values for values, _ in pieces]), np.concatenate(valid)]


def _nulls(like: Any, n: int) -> Any:
    return np.zeros(n, like.dtype) if isinstance(like, np.ndarray) else pa.array([""] * n, pa.large_string())
