"""Events as columns, before they become a table: found for pieces of a batch, then joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.native.concatenation import concat_columns
from vedette.operators.border.events import Events
from vedette.operators.border.finder import join_events, reasons_of
from vedette.operators.border.moves import Moves
from vedette.operators.border.runs import Runs


@dataclass(frozen=True)
class EventColumns:
    """Columns of one length: the slot of the key, the time, the query, what happened and why."""

    slots: NDArray[np.int32]
    times: NDArray[Any]
    queries: NDArray[np.int32]
    kinds: NDArray[np.int8]
    reasons: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.slots)

    def take(self, chosen: NDArray[Any]) -> EventColumns:
        return EventColumns(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @classmethod
    def none(cls) -> EventColumns:
        return cls.of(Runs.none(0), [], Moves.away(np.empty(0, np.int32), np.empty(0, np.int64)))

    @classmethod
    def of(cls, runs: Runs, special: Sequence[Events], moves: Moves) -> EventColumns:
        """The changes of moves, and other events."""
        if not special:
            slots, times, kinds = runs.columns(moves.slots, moves.times)
            return cls(slots, times, runs.queries, kinds, reasons_of(runs, moves))
        events = join_events(runs, special, moves)
        slots, times = moves.slots[events.moves], moves.times[events.moves]
        return cls(slots, times, events.queries, events.kinds, events.reasons)

    @classmethod
    def concat(cls, many: Sequence[EventColumns]) -> EventColumns:
        """The events of consecutive pieces."""
        names = [field.name for field in fields(cls)]
        return cls(*concat_columns([[getattr(each, name) for name in names] for each in many]))
