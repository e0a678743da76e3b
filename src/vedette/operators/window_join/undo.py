"""The state of a window join before a step, so that a refused or unread step can be undone.

Rows are appended at the end and dropped from the front, so a mark is enough to go back. Lists and codes are not saved:
after an undo, the next step builds them from the rows, as after `load`.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vedette.operators.window_join.monitor import JoinMonitor

_ATTRIBUTES = (
    "time_type",
    "id_types",
    "n_late",
    "late_rows",
    "n_numbered",
    "saved_rows",
    "is_behind",
    "longest",
    "most",
)
_NO_EPOCH = -1  # no query set has it


class JoinUndo:
    """The state of a window join before a step."""

    def __init__(self, monitor: JoinMonitor) -> None:
        join = monitor.join
        self._kept = {name: copy.copy(getattr(monitor, name)) for name in _ATTRIBUTES}
        self._followed = monitor.followed
        self._streams = join.streams
        self._marks = [stream.mark() for stream in join.streams]
        self._clocks = join.clocks[:]
        self._n_failed = join.n_failed

    def apply(self, monitor: JoinMonitor) -> None:
        for name, value in self._kept.items():
            setattr(monitor, name, value)
        for stream, mark in zip(self._streams, self._marks, strict=True):
            stream.go_back(mark)
        join = monitor.join = monitor.make_join()
        join.streams, join.clocks, join.n_failed = self._streams, self._clocks, self._n_failed
        # The queries of that version were active. Another epoch makes the next step build the lists again.
        monitor.followed = None if self._followed is None else (_NO_EPOCH, self._followed[1])
