"""What every operator gives to the service: its options, how its rows are read, a step, and the form of its events."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from vedette.errors import QueryError, RowError, shown
from vedette.operators.stable_ids import EVENT_ID
from vedette.serve.access import OWNER
from vedette.serve.bodies import MOMENT
from vedette.serve.models import MonitorBody
from vedette.serve.problems import Problem
from vedette.serve.row_log import Body

SEQUENCE = "sequence"  # every event has it


@dataclass(frozen=True)
class EventForm:
    """Where an event has its query and its keys, how its type is called in streams, and which types and fields are."""

    query: str
    keys: tuple[str, ...]
    type_of: Callable[[dict[str, Any]], str]
    types: tuple[str, ...]
    fields: tuple[str, ...]  # besides those that the options of the monitor add
    sides: tuple[str, ...] = ("",)  # of rows; columns are named after them

    def fields_with(self, options: dict[str, Any]) -> list[str]:
        """The fields of the events of a monitor."""
        given = options.get("columns") or ()
        by_side = given if isinstance(given, dict) else dict.fromkeys(self.sides, given)
        columns = [f"{side}_{name}" if side else name for side, names in by_side.items() for name in names]
        return list(
            dict.fromkeys([SEQUENCE, *self.fields, *columns, *(options.get("metadata") or ()), OWNER, EVENT_ID])
        )


@dataclass(frozen=True)
class Moment:
    """Time that passes without rows. Without a time, only changes of queries take effect."""

    time: Any
    num_rows: int = 0

    @classmethod
    def read(cls, data: bytes) -> Moment:
        return cls(orjson.loads(data).get("time"))

    @classmethod
    def to_body(cls, time: Any) -> Body:
        """How a moment is written to the log."""
        return Body(MOMENT, orjson.dumps({} if time is None else {"time": time}))


class Operator(ABC):
    """The operator of one monitor. A batch is what `read` returns: rows, with their number in `num_rows`."""

    options_model: ClassVar[type[MonitorBody]]
    joins_requests = False  # requests of distinct keys may be one step
    follows_queries = False  # changes of queries change the answer without rows
    max_rows = sys.maxsize  # of a request

    def __init__(self, queries: Any, options: dict[str, Any]) -> None:
        self.queries = queries
        given = {name: value for name, value in options.items() if name not in ("clock", "delay")}
        given["metadata"] = list(dict.fromkeys([*(given.get("metadata") or ()), OWNER]))
        _check_names(given)
        self.monitor = self.make(given)

    @abstractmethod
    def make(self, options: dict[str, Any]) -> Any:
        """The monitor. Raises VedetteError if the options do not fit the set."""

    @staticmethod
    @abstractmethod
    def event_form(streams: Sequence[str]) -> EventForm:
        """The form of events; `streams` are those of the set."""

    # Rows.

    def limit_rows(self, most: int) -> None:
        """Set the most rows of a request. Those of a log are not limited."""
        self.max_rows = most

    def read(self, body: Body) -> Any:
        """The rows of a request, or the moment. Raises RowError or a problem."""
        return Moment.read(body.data) if body.form == MOMENT else self.read_rows(body)

    @abstractmethod
    def read_rows(self, body: Body) -> Any:
        """The rows of a request."""

    def run(self, batches: Sequence[Any]) -> pa.Table:
        """The events of the requests of one step, or of a moment. If it raises, nothing has changed."""
        first = batches[0]
        if isinstance(first, Moment):
            return self.refresh() if first.time is None else self.advance(first.time)
        return self.step(batches)

    def keys_of(self, batch: Any) -> set[Any]:
        """The keys of a request's rows, as events have them; for operators that join requests."""
        raise NotImplementedError

    def can_join(self, one: Any, other: Any) -> bool:
        """Whether the rows of two requests, of distinct keys, can be one step."""
        raise NotImplementedError

    @abstractmethod
    def step(self, batches: Sequence[Any]) -> pa.Table:
        """The events of rows."""

    def advance(self, time: Any) -> pa.Table:
        """The events of time that has passed."""
        raise Problem(409, "no_time", "the values of a band join have no times, so time changes nothing")

    def refresh(self) -> pa.Table:
        """The events of queries that have changed."""
        return NO_EVENTS

    def wall_time(self, seconds: float) -> Any:
        """A moment of the clock, in seconds since 1970, as a time of the rows. Raises QueryError if they have none."""
        raise QueryError("needs rows with times", option="clock")

    # State.

    def load(self, state: bytes) -> None:
        self.monitor.load(state)

    @property
    def done(self) -> Sequence[Any]:
        """The ids of queries that the last step has reported for the only time."""
        return ()

    @property
    def makes_events_of_others(self) -> bool:
        """Whether rows of a key can cause events of other keys, because time passes."""
        return False

    @property
    @abstractmethod
    def n_kept(self) -> int:
        """The number of keys, rows or objects in the state."""

    @property
    def n_late(self) -> int:
        return int(self.monitor.n_late)


def ordered(events: pa.Table, names: Sequence[str]) -> pa.Table:
    """Events in the order of some columns. Events that are equal in them keep their order.

    The order in which an operator finds pairs depends on how its index was built. Sequence numbers must not.
    """
    if events.num_rows < 2:
        return events
    columns = [(name, "ascending") for name in names]
    plain = {
        name: events[name].cast(events[name].type.value_type)
        if pa.types.is_dictionary(events[name].type)
        else events[name]
        for name in names
    }
    return events.take(pc.sort_indices(pa.table(plain), columns))


SIGNS = ("emit", "retract")


def sign_type(record: dict[str, Any]) -> str:
    """The type of an event that has a sign."""
    return SIGNS[record["sign"] < 0]


def as_number(time: Any) -> float:
    """A time that must be a number."""
    if isinstance(time, bool) or not isinstance(time, (int, float)):
        raise RowError(f"time must be a number, such as seconds since 1970; got {shown(time)}", field="time")
    return time


def _check_names(options: dict[str, Any]) -> None:
    """Raise QueryError if events would have two values under the name of their sequence number."""
    columns = options.get("columns")
    for option, names in (("columns", columns if isinstance(columns, list) else ()), ("metadata", options["metadata"])):
        if any(name.lower() == SEQUENCE for name in names):
            raise QueryError(f"names {SEQUENCE!r}, which every event has itself; omit it", option=option)


NO_EVENTS = pa.table({})
