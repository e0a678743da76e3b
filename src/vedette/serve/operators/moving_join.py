"""Moving joins in the service: moving objects and the zones of a set, and how their pairs change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from vedette.operators.moving_join.zone_monitor import ZoneMonitor
from vedette.serve.bodies import refuse_side
from vedette.serve.models import MovingMonitorBody
from vedette.serve.operators.operator import SIGNS, EventForm, Operator, as_number, ordered, sign_type
from vedette.serve.operators.plain_rows import PlainRows
from vedette.serve.row_log import Body

_NUMBERS = ("time", *(f"{v}{axis}{end}" for v in ("", "v") for axis in "xyz" for end in ("", "_low", "_high")))


class MovingJoinOperator(Operator):
    """One `ZoneMonitor`. Zones that change are events of their own, without rows."""

    options_model = MovingMonitorBody
    follows_queries = True
    monitor: ZoneMonitor

    def make(self, options: dict[str, Any]) -> ZoneMonitor:
        return self.queries.monitor(**options)  # type: ignore[no-any-return]

    @staticmethod
    def event_form(streams: Sequence[str]) -> EventForm:
        return EventForm("b", ("a",), sign_type, SIGNS, ("sign", "a", "b", "start", "end"), ("a",))

    def read_rows(self, body: Body) -> pa.Table:
        if body.side not in ("", "a"):
            raise refuse_side(body.side)
        rows = PlainRows(_NUMBERS, self.max_rows, missing={})
        return rows.to_table(rows.read(body.form, body.data))

    def step(self, batches: Sequence[pa.Table]) -> pa.Table:
        (batch,) = batches
        return self._in_order(self.monitor.update(batch))

    def advance(self, time: Any) -> pa.Table:
        return self._in_order(self.monitor.update(time=as_number(time)))

    def refresh(self) -> pa.Table:
        now = self.monitor.time
        return self._in_order(self.monitor.update(time=now)) if now is not None else self.monitor.join.changes

    def _in_order(self, events: pa.Table) -> pa.Table:
        return ordered(events, ["a", "b"])

    def wall_time(self, seconds: float) -> float:
        return seconds

    def load(self, state: bytes) -> None:
        super().load(state)
        if self.monitor.time is not None:  # before the first time, the state has no zones
            self.monitor.join.version = self.queries.version  # a snapshot is written after a refresh

    @property
    def n_kept(self) -> int:
        return self.monitor.join.n_a
