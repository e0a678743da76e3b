"""Border monitoring in the service: rows of keys, enter and exit events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.schema import Schema
from vedette.errors import QueryError, RowError
from vedette.files.one_row import RowReader
from vedette.operators.border.events import KINDS
from vedette.operators.border.monitor import BorderMonitor
from vedette.serve.bodies import Read, RowsOf, join_reads, refuse_side
from vedette.serve.models import BorderMonitorBody
from vedette.serve.operators.operator import EventForm, Operator
from vedette.serve.row_log import Body


@dataclass
class KeyedRows:
    """The rows of a request: records of JSON until a step makes a table of them, or a table."""

    read: Read

    @property
    def num_rows(self) -> int:
        return 1 if type(self.read) is dict else len(self.read)


class BorderOperator(Operator):
    """One `BorderMonitor`. Its hot path is `read_rows` and `step`."""

    options_model = BorderMonitorBody
    joins_requests = True
    monitor: BorderMonitor

    def make(self, options: dict[str, Any]) -> BorderMonitor:
        schema = self.queries.schema
        check_fields(schema, [options["key"], options["time"], *(options.get("columns") or ())])
        monitor: BorderMonitor = self.queries.border(**options, event_id=True)
        monitor.removes_done = False  # the registry removes them
        return monitor

    @staticmethod
    def event_form(streams: Sequence[str]) -> EventForm:
        fields = ("key", "time", "query", "event", "reason")
        return EventForm("query", ("key",), lambda record: str(record["event"]), KINDS, fields)

    @cached_property
    def _rows_of(self) -> RowsOf:
        return RowsOf(self.queries.schema, self.queries.time_zone, self.max_rows)

    def limit_rows(self, most: int) -> None:
        super().limit_rows(most)
        self.__dict__.pop("_rows_of", None)

    def read_rows(self, body: Body) -> KeyedRows:
        if body.side:
            raise refuse_side(body.side)
        return KeyedRows(self._rows_of.read(body.form, body.data))

    def step(self, batches: Sequence[KeyedRows]) -> pa.Table:
        return self.monitor.step(join_reads([each.read for each in batches], self._rows_of))

    def keys_of(self, batch: KeyedRows) -> set[Any]:
        key, rows_of = self.monitor.options.key, self._rows_of
        if not isinstance(batch.read, pa.Table):
            keys = rows_of.plain_values(key, batch.read)
            if keys is not None:
                return keys
            batch.read = rows_of.to_table(batch.read)
        names = {name.lower(): name for name in batch.read.column_names}
        if key.lower() not in names:
            return set()
        column = batch.read.column(names[key.lower()])
        if pa.types.is_integer(column.type) and column.null_count == 0:  # five times as fast by way of NumPy
            return set(column.to_numpy().tolist())
        return set(pc.unique(column).to_pylist())

    def can_join(self, one: KeyedRows, other: KeyedRows) -> bool:
        if isinstance(one.read, pa.Table) != isinstance(other.read, pa.Table):
            return False
        return not isinstance(one.read, pa.Table) or bool(one.read.schema.equals(other.read.schema))

    def advance(self, time: Any) -> pa.Table:
        return self.monitor.advance(read_moment(time, self.monitor.options.time, self.queries.schema))

    def wall_time(self, seconds: float) -> str:
        return wall_timestamp(seconds, self.monitor.options.time, self.queries.schema)

    @property
    def done(self) -> Sequence[Any]:
        return self.monitor.done

    @property
    def makes_events_of_others(self) -> bool:
        options = self.monitor.options
        return bool(options.expire_after or options.dwell or self.queries.has_option("expire_after"))

    @property
    def n_kept(self) -> int:
        return self.monitor.n_keys


def check_fields(schema: Schema, names: Sequence[str]) -> None:
    """Raise RowError if a name is not a field of the rows."""
    for name in names:
        if schema.find(name) is None:
            raise RowError(schema.unknown_field(name), field=name)


def read_moment(time: Any, name: str, schema: Schema) -> Any:
    """A time of JSON, in the type of the field that has the rows' times."""
    field = schema.find(name)
    own = "time" if field is None else field.name
    return RowReader(schema).convert({own: time})[own]


def wall_timestamp(seconds: float, name: str, schema: Schema) -> str:
    """A moment of the clock as a time of the rows."""
    field = schema.find(name)
    if field is None or field.type.name != "timestamp":
        raise QueryError(f"is 'wall', which needs times that are timestamps; {name!r} is not", option="clock")
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
