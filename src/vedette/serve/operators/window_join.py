"""Window joins in the service: rows of several streams, pairs of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from vedette.errors import QueryError
from vedette.operators.window_join.monitor import JoinMonitor
from vedette.serve.bodies import RowsOf
from vedette.serve.models import WindowMonitorBody
from vedette.serve.operators.border import check_fields, read_moment, wall_timestamp
from vedette.serve.operators.operator import NO_EVENTS, SEQUENCE, EventForm, Operator, ordered
from vedette.serve.operators.side_rows import SideRows, read_sides
from vedette.serve.row_log import Body


class WindowJoinOperator(Operator):
    """One `JoinMonitor`. A batch has rows by stream."""

    options_model = WindowMonitorBody
    monitor: JoinMonitor

    def make(self, options: dict[str, Any]) -> JoinMonitor:
        streams: list[str] = self.queries.streams
        if SEQUENCE in (stream.lower() for stream in streams):
            raise QueryError(f"a stream is called {SEQUENCE!r}, which every event has itself; use another name")
        roles = {}
        for role in ("time", "id"):
            by_stream = _by_stream(options.pop(role), role, streams)
            for stream, name in by_stream.items():
                check_fields(self.queries.schema_of(stream), [name])
                roles[f"{stream}_{role}"] = name
        return self.queries.window(**options, **roles, event_id=True)  # type: ignore[no-any-return]

    @staticmethod
    def event_form(streams: Sequence[str]) -> EventForm:
        sides = tuple(streams)
        return EventForm("query", sides, lambda record: "pair", ("pair",), ("query", *sides), sides)

    def read_rows(self, body: Body) -> SideRows:
        streams = self.queries.streams
        readers = {
            stream: RowsOf(self.queries.schema_of(stream), self.queries.time_zone, self.max_rows) for stream in streams
        }
        return read_sides(body, readers, self.max_rows)

    def step(self, batches: Sequence[SideRows]) -> pa.Table:
        (batch,) = batches
        return ordered(self.monitor.step(**batch.tables), ["query", *self.queries.streams, "event_id"])

    def advance(self, time: Any) -> pa.Table:
        name, schema = self._time
        if name is None:
            raise QueryError("the rows of this monitor have no times; its option `time` names none")
        self.monitor.advance(read_moment(time, name, schema))
        return NO_EVENTS

    def wall_time(self, seconds: float) -> str:
        name, schema = self._time
        return wall_timestamp(seconds, name or "time", schema)

    @property
    def _time(self) -> tuple[str | None, Any]:
        return self.monitor.options.times[0], self.queries.schema_of(self.queries.streams[0])

    @property
    def n_kept(self) -> int:
        return self.monitor.n_rows


def _by_stream(given: Any, role: str, streams: Sequence[str]) -> Mapping[str, str]:
    """The field of each stream: one for all, or by stream."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        return dict.fromkeys(streams, given)
    for stream in given:
        if stream not in streams:
            raise QueryError(f"names an unknown stream {stream!r}; the streams are: {', '.join(streams)}", option=role)
    return given
