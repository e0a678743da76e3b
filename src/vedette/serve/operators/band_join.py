"""Band joins in the service: values of two sides, and how the pairs of all bands change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from vedette.operators.band_join.monitor import BandMonitor
from vedette.serve.models import BandMonitorBody
from vedette.serve.operators.operator import SIGNS, EventForm, Operator, ordered, sign_type
from vedette.serve.operators.plain_rows import PlainRows
from vedette.serve.operators.side_rows import SideRows, read_sides
from vedette.serve.row_log import Body

_SIDES = ("left", "right")


class BandJoinOperator(Operator):
    """One `BandMonitor`. Bands that change are events of their own, without rows."""

    options_model = BandMonitorBody
    follows_queries = True
    monitor: BandMonitor

    def make(self, options: dict[str, Any]) -> BandMonitor:
        return self.queries.monitor(**options)  # type: ignore[no-any-return]

    @staticmethod
    def event_form(streams: Sequence[str]) -> EventForm:
        return EventForm("query", _SIDES, _type_of, (*SIGNS, "affected"), ("sign", "query", *_SIDES), _SIDES)

    def read_rows(self, body: Body) -> SideRows:
        rows = PlainRows(("value",), self.max_rows, missing={"op": "insert"})
        return read_sides(body, dict.fromkeys(_SIDES, rows), self.max_rows)

    def step(self, batches: Sequence[SideRows]) -> pa.Table:
        (batch,) = batches
        return self._in_order(self.monitor.step(**batch.tables))

    def refresh(self) -> pa.Table:
        return self._in_order(self.monitor.refresh())

    def _in_order(self, events: pa.Table) -> pa.Table:
        return ordered(events, [name for name in ("query", *_SIDES) if name in events.column_names])

    @property
    def n_kept(self) -> int:
        return self.monitor.n_left + self.monitor.n_right

    @property
    def n_late(self) -> int:
        return 0


def _type_of(record: dict[str, Any]) -> str:
    return sign_type(record) if "sign" in record else "affected"
