"""Saved states of all monitors: whole states and deltas, written, checked and applied in one place.

A subclass of MonitorState in each operator's folder declares what the operator saves. A state holds ids and values,
never positions or compiled queries, so it fits every later version of its query set. It has its own format number: a
new layout of indexes or of saved sets does not invalidate a checkpoint.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vedette.data.container import Container, Decoder, Encoder, refusing_damage
from vedette.data.ids import Ids
from vedette.errors import SnapshotError, shortened, shown
from vedette.native.damage import check, check_type
from vedette.operators.slot_log import SlotLog
from vedette.operators.state_checks import check_distinct_ids

FORMAT = 2  # goes up when any operator's fields change
_MAGIC = b"VDSTATE\0"
_OLD_MAGIC = b"VEDETTE\0"  # of saved sets, and of states before they had a format of their own
_ADVICE = "start with a new state (in Spark: with a new checkpoint)"
_SCALAR = str | bool | int | float | None

Content = dict[str, Any]


class Clearable(Protocol):
    """Anything that keeps rows between calls."""

    def clear(self) -> None: ...


class History(Protocol):
    """A query set whose versions have checksums."""

    @property
    def version(self) -> int: ...

    def history_mark(self, version: int) -> int | None: ...


M = TypeVar("M", bound=Clearable)


class MonitorState(ABC, Generic[M]):
    """What one operator saves. Parts (streams, sides, sets, keys) are whole, or only what changed in them."""

    kind: ClassVar[str]  # as errors name it: "border state"

    # Declared by each operator.

    @abstractmethod
    def options(self, monitor: M) -> Content:
        """Options by name that must be the same where the state is loaded: scalars, or lists of them."""

    def history(self, monitor: M) -> tuple[History, int] | None:
        """The query set and its version, as the answers so far have it; None where the operator has no queries."""
        return None

    @abstractmethod
    def write(self, monitor: M, *, only_changes: bool) -> Content:
        """The operator's own fields, and under "parts" a dict per part, each with `is_whole`.

        With `only_changes` a part may be what changed since the state was last saved, loaded or written.
        """

    @abstractmethod
    def validate(self, monitor: M, content: Content) -> None:
        """Raise DamageError unless content from outside is what `write` makes."""

    def check_fits(self, monitor: M, content: Content) -> None:
        """Raise SnapshotError unless valid content fits this monitor; options and history are compared already."""

    @abstractmethod
    def apply(self, monitor: M, content: Content) -> None:
        """Take over checked content. Where it is whole, the monitor has been cleared."""

    # The same for all operators.

    def save(self, monitor: M) -> bytes:
        return self._to_bytes(monitor, only_changes=False)

    def take_delta(self, monitor: M) -> bytes:
        """What changed since the last `save`, `load` or `take_delta`; everything where that is not known."""
        return self._to_bytes(monitor, only_changes=True)

    def load(self, monitor: M, blob: bytes) -> None:
        """Replace the monitor's state by a saved one; raises SnapshotError, and changes nothing, if it does not fit."""
        self._apply(monitor, self._check(monitor, blob, may_be_delta=False))

    def apply_delta(self, monitor: M, blob: bytes) -> None:
        """Update a loaded state; deltas are applied in the order in which they were taken."""
        self._apply(monitor, self._check(monitor, blob, may_be_delta=True))

    def _to_bytes(self, monitor: M, *, only_changes: bool) -> bytes:
        history = self.history(monitor)
        marked = None if history is None else [history[1], history[0].history_mark(history[1])]
        content = {"options": self.options(monitor), "history": marked}
        return to_bytes(self.kind, content | self.write(monitor, only_changes=only_changes))

    def _check(self, monitor: M, blob: bytes, *, may_be_delta: bool) -> Content:
        content = from_bytes(self.kind, blob)
        options, history = self.options(monitor), self.history(monitor)
        with _refusing_damage(self.kind):
            _validate_options(content["options"], options)
            _validate_parts(content["parts"])
            if history is not None:
                _validate_history(content["history"])
        _compare_options(content["options"], options)
        if history is not None:
            _compare_history(content["history"], history[0])
        if not (may_be_delta or is_whole(content)):
            raise SnapshotError("the bytes are a delta; load what `save` returned, then apply the deltas in order")
        with _refusing_damage(self.kind):
            self.validate(monitor, content)
        self.check_fits(monitor, content)
        return content

    def _apply(self, monitor: M, content: Content) -> None:
        with _refusing_damage(self.kind):
            if is_whole(content):
                monitor.clear()
            self.apply(monitor, content)


def is_whole(content: Content) -> bool:
    """Whether content is a whole state, and not a delta in any part."""
    return all(part["is_whole"] for part in content["parts"].values())


# Bytes.


def to_bytes(kind: str, content: Content) -> bytes:
    """A state of a kind, of dicts, lists, scalars, arrays and strings."""
    return b"".join(_container(kind).to_pieces({"kind": kind} | content, Encoder()))


def from_bytes(kind: str, blob: bytes) -> Content:
    """The content of a state of this kind; raises SnapshotError for anything else."""
    if not isinstance(blob, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a saved {kind} is bytes; got {type(blob).__name__}")
    if bytes(blob[:8]) == _OLD_MAGIC:
        raise SnapshotError(
            f"the bytes are a query set, or a state that an earlier Vedette saved, and this one reads neither as a "
            f"{kind}: pass what `save` returned, or {_ADVICE}"
        )
    content = _container(kind).read(memoryview(bytearray(blob)), Decoder())
    found = content.get("kind")
    if not isinstance(found, str) or found != kind:
        other = f" but a {shortened(found, 40)}" if isinstance(found, str) else ""
        raise SnapshotError(f"the bytes are not a saved {kind}{other}; pass what `save` returned")
    return content


def _container(kind: str) -> Container:
    return Container(_MAGIC, FORMAT, kind, _ADVICE)


@contextmanager
def _refusing_damage(kind: str) -> Iterator[None]:
    with refusing_damage(f"the saved {kind}", _ADVICE):
        yield


# Options, history and parts.


def _validate_options(saved: Any, wanted: Content) -> None:
    check_type(saved, dict[str, _SCALAR | list[_SCALAR]], "the options of a state")
    check(saved.keys() == wanted.keys(), "the options of a state are incomplete")


def _compare_options(saved: Content, wanted: Content) -> None:
    for name, value in wanted.items():
        if saved[name] != value:
            raise SnapshotError(
                f"the state was saved with {name}={shown(saved[name])}, and here it is {shown(value)}; use the option "
                f"that it was saved with, or {_ADVICE}"
            )


def _validate_history(history: Any) -> None:
    """The version of the queries, and its checksum, which may be unknown."""
    check_type(history, list[int | None], "the history of a state")
    check(len(history) == 2 and history[0] is not None and history[0] >= 0, "the history of a state is invalid")


def _compare_history(history: list[Any], queries: History) -> None:
    version, mark = history
    if version > queries.version:
        raise SnapshotError(
            f"the state was saved at version {version} of the queries, which are at version {queries.version} here; "
            f"load the set that was saved with it"
        )
    if queries.history_mark(version) not in (None, mark):  # None where a registry no longer knows the version
        raise SnapshotError(
            f"the state was saved with another set of queries, whose changes differ; load the set that was saved with "
            f"it, or {_ADVICE}"
        )


def _validate_parts(parts: Any) -> None:
    check_type(parts, dict[str, Any], "the parts of a state")
    for part in parts.values():
        check_type(part, dict[str, Any], "a part of a state")
        check_type(part["is_whole"], bool, "whether a part of a state is whole")


# Parts that are rows by id, with a log of the slots that changed.


class RowsById(Protocol):
    """Rows by slot, whose ids keep their slots; a log notes which slots change."""

    ids: Ids
    lives: NDArray[np.bool_]
    log: SlotLog

    @property
    def living(self) -> NDArray[np.int32]: ...

    def find(self, ids: Any) -> NDArray[np.int32]: ...

    def free(self, slots: NDArray[np.int32]) -> None: ...


def write_ids(table: RowsById, *, only_changes: bool) -> tuple[NDArray[np.int32], Content]:
    """The slots of the rows that a part consists of, and the part without them: their ids, and the ids freed."""
    if not only_changes:
        table.log.begin()
    log = table.log.take(table.lives) if only_changes else None
    slots, freed = (table.living, None) if log is None else (log[0], table.ids.take(log[1]))
    return slots, {"is_whole": log is None, "ids": table.ids.take(slots), "freed": freed}


def validate_ids(part: Content, known: Ids | None) -> int:
    """Raise DamageError unless the ids of a part are valid beside the known ones; the number of rows."""
    n = check_distinct_ids(part["ids"], known, "the ids of a state")
    if part["is_whole"]:
        check(part["freed"] is None, "a whole state frees ids")
    else:
        check_distinct_ids(part["freed"], known, "the freed ids of a state")
    return n


def free_rows(table: RowsById, part: Content) -> None:
    """Free what a part replaces: all rows where it is whole, otherwise those that it frees."""
    if part["is_whole"]:
        table.free(table.living)
    elif len(part["freed"]):
        free_ids(table, part["freed"])


def free_ids(table: RowsById, ids: Any) -> None:
    """Free the rows of these ids; unknown ids are ignored."""
    slots = table.find(ids)
    table.free(slots[slots >= 0])
