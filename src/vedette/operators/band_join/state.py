"""The fields of a saved band join: the values of both sides, by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vedette.native.damage import check, check_shape, check_type
from vedette.operators.band_join.rows import SIDES
from vedette.operators.carried_state import read_carried, validate_carried, write_carried
from vedette.operators.state import (
    Content,
    History,
    MonitorState,
    free_ids,
    free_rows,
    is_whole,
    validate_ids,
    write_ids,
)
from vedette.operators.state_checks import check_count

if TYPE_CHECKING:
    from vedette.operators.band_join.monitor import BandMonitor
    from vedette.operators.band_join.side import Side


class BandState(MonitorState["BandMonitor"]):
    kind = "band join state"

    def options(self, monitor: BandMonitor) -> Content:
        return {}

    def history(self, monitor: BandMonitor) -> tuple[History, int]:
        return monitor.queries, monitor.version

    def write(self, monitor: BandMonitor, *, only_changes: bool) -> Content:
        parts = {}
        for side in (monitor.left, monitor.right):
            slots, part = write_ids(side, only_changes=only_changes)
            carried = write_carried(side.carried.at(slots) if side.carried else None)
            parts[_name(side)] = part | {"values": side.values[slots]} | carried
        return {"n_unknown": monitor.n_unknown, "parts": parts}

    def validate(self, monitor: BandMonitor, content: Content) -> None:
        check_count(content["n_unknown"], "a count of a state")
        check(content["parts"].keys() == {*SIDES.values()}, "the sides of a state are incomplete")
        for side in (monitor.left, monitor.right):
            part = content["parts"][_name(side)]
            n = validate_ids(part, None if is_whole(content) else side.ids)
            check_type(part["values"], NDArray[np.float64], "the values of a state")
            check_shape(part["values"], (n,), "the values of a state")
            check(np.isfinite(part["values"]).all(), "a value of a state is not finite")
            validate_carried(part, n)

    def apply(self, monitor: BandMonitor, content: Content) -> None:
        for side in (monitor.left, monitor.right):
            part = content["parts"][_name(side)]
            free_rows(side, part)
            if len(part["ids"]):
                free_ids(side, part["ids"])
                rows = read_carried(part, side.carried.names, len(part["ids"])) if side.carried else None
                side.put(part["ids"], part["values"], side.slots_for(part["ids"]), rows)
            side.log.begin()
        monitor.version = content["history"][0]
        monitor.n_unknown = content["n_unknown"]


def _name(side: Side) -> str:
    return SIDES[side.sign]
