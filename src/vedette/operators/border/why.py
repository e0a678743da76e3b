"""Why a key is inside a query, or not: what `BorderMonitor.why` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column, null_column
from vedette.data.moments import find_field, is_virtual, needed_fields, with_moment
from vedette.data.schema import Type
from vedette.errors import RowError, shown
from vedette.language import Residual, show_value, to_json_value, to_python
from vedette.operators.border.behaviour import NONE, Behaviour
from vedette.operators.border.pair_table import KeyQueryPairs, PairTable
from vedette.queries.why import Why, explain_row, show_clauses

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor

_TIMES = (
    *("time", "pending_since", "enters_at", "lingering_since"),
    *("expires_at", "expired_at", "reported_at", "cooling_until"),
)


@dataclass(frozen=True)
class BorderWhy:
    """A key and a query: the last row of the key clause by clause, and what options leave open.

    >>> from vedette import QuerySet
    >>> alerts = QuerySet("symbol string, price double, t bigint")
    >>> alerts.add("cheap", "price < 40")
    >>> monitor = alerts.border(key="symbol", time="t", dwell=10)
    >>> _ = monitor.step({"symbol": ["IBM"], "price": [39.0], "t": [3]})
    >>> print(monitor.why("cheap", "IBM", {"price": 42.0}))
    key 'IBM' is inside query 'cheap' since 3; its enter is emitted at 13
    last row, at 3:
    true    price < 40  price is 39, 1 below 40
    next row: the key leaves
    false   price < 40  price is 42, 2 above 40
    """

    key: str | int
    last: Why  # the last row of the key
    time: Any  # of the last row
    next: Why | None = None  # a row that may come next
    pending_since: Any = None  # inside since then, and not yet for the dwell time
    enters_at: Any = None  # when the dwell time is over
    lingering_since: Any = None  # outside since then, but within the margin
    expires_at: Any = None  # when the key leaves unless it has another row
    expired_at: Any = None  # when the key left, because it has no other row
    reported_at: Any = None  # the last enter that was reported, if a cooldown or `once` follows it
    cooling_until: Any = None  # when the cooldown is over; None with `once`
    n_held_back: int = 0  # events held back since

    @property
    def holds(self) -> bool:
        """Whether the key is inside: its last row matches or is within the margin, and it was not silent too long."""
        return self.expired_at is None and (self.last.holds or self.lingering_since is not None)

    @property
    def move(self) -> str | None:
        """What the next row would do: "enter", "exit", or None. Options may delay it or hold it back."""
        if self.next is None or self.next.holds == self.holds:
            return None
        return "enter" if self.next.holds else "exit"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        times = {name: to_json_value(getattr(self, name)) for name in _TIMES}
        following = None if self.next is None else self.next.to_dict()
        own: dict[str, Any] = {"key": self.key, "query": self.last.query, "holds": self.holds, "move": self.move}
        own["n_held_back"] = self.n_held_back
        return {**own, **times, "last": self.last.to_dict(), "next": following}

    def __str__(self) -> str:
        state = f"key {self.key!r} is {'inside' if self.holds else 'outside'} query {self.last.query!r}"
        if self.pending_since is not None:
            state += f" since {show_value(self.pending_since)}; its enter is emitted at {show_value(self.enters_at)}"
        if self.lingering_since is not None:
            state += f": outside since {show_value(self.lingering_since)}, but within the margin"
        if self.reported_at is not None:
            until = "" if self.cooling_until is None else f" until {show_value(self.cooling_until)}"
            held = f", {self.n_held_back} so far" if self.n_held_back else ""
            state += f"; reported at {show_value(self.reported_at)}, further events are held back{until}{held}"
        if self.expires_at is not None:
            state += f"; without another row it leaves after {show_value(self.expires_at)}"
        if self.expired_at is not None:
            state += f"; it was silent for too long at {show_value(self.expired_at)}"
        lines = [state, f"last row, at {show_value(self.time)}:", show_clauses(self.last.clause)]
        if self.next is not None:
            moves = {"enter": "the key enters", "exit": "the key leaves", None: "no event"}
            lines += [f"next row: {moves[self.move]}", show_clauses(self.next.clause)]
        return "\n".join(lines)


def explain_pair(
    monitor: BorderMonitor, behaviour: Behaviour, query: str | int, key: str | int, row: Mapping[str, Any] | None
) -> BorderWhy:
    """The state of a key and a query, and what a next row would do."""
    queries = monitor.queries
    condition, text = queries.condition_of(query)
    slot = _find_slot(monitor, key)
    columns = _read_state(monitor, slot, condition)
    last = explain_row(query, condition, columns, text)
    zone = queries.time_zone
    times: dict[str, Any] = {"time": monitor.keys.times[slot]}
    tables = (monitor.pending, monitor.lingering, monitor.cooling)
    pending, lingering, cooling = (_find_pair(monitor, table, slot, query) for table in tables)
    number = queries.view().number(queries.view().ids.read([query]))
    dwell, cooldown = (behaviour.durations(name, number)[0] for name in ("dwell", "cooldown"))
    if pending is not None and dwell != NONE and last.holds:
        times |= {"pending_since": pending.times[0], "enters_at": pending.times[0] + dwell}
    if lingering is not None and not last.holds:
        times["lingering_since"] = lingering.times[0]
    n_held_back = 0
    if cooling is not None:
        times["reported_at"], n_held_back = cooling.times[0], int(cooling.ordinals[0])
        if not behaviour.are_once(number)[0]:
            times["cooling_until"] = cooling.times[0] + cooldown
    times |= _find_expiry(monitor, behaviour, slot, number)
    shown_times = {name: to_python(np.array([each]), Type(monitor.time_type), zone) for name, each in times.items()}
    following = None
    if row is not None:
        now = row.get(monitor.options.time) if monitor.time_type == "timestamp" else None
        following = queries.why(query, row, now=now)
    return BorderWhy(key, last, next=following, n_held_back=n_held_back, **shown_times)


def _find_expiry(monitor: BorderMonitor, behaviour: Behaviour, slot: int, number: NDArray[np.int32]) -> dict[str, Any]:
    """When the key leaves the query, or has left it, because it is silent."""
    silences, silent, slots = behaviour.silences, monitor.silent, np.array([slot], np.int32)
    known = None if silent is None else silent.read(slots)
    defaults = np.array([silences.default]) if known is None else known.defaults
    own = silences.of(number, monitor.keys.versions[slots], defaults)[0]
    if own == silences.never:
        return {}
    is_over = known is not None and own < known.judged[0]
    return {"expired_at" if is_over else "expires_at": monitor.keys.times[slot] + own}


def _find_slot(monitor: BorderMonitor, key: str | int) -> int:
    ids = monitor.keys.keys
    slot = int(ids.find(ids.read([key]))[0]) if len(ids) else -1
    if slot < 0 or not monitor.keys.has_row[slot]:
        raise RowError(f"key {shown(key)} has no row in this monitor; it has {monitor.n_keys:,} keys")
    return slot


def _read_state(monitor: BorderMonitor, slot: int, condition: Residual) -> dict[str, Column]:
    """The fields of the condition in the last row of a key. Those that were not kept are null."""
    schema = monitor.queries.schema
    held = monitor.keys.rows(np.array([slot], np.int32))
    columns = {}
    for name in needed_fields(condition.fields):
        field = find_field(schema, name)
        assert field is not None
        columns[name] = held[name] if name in held else null_column(field.type, 1)
    moments = [name for name in condition.fields if is_virtual(schema, name)]
    return with_moment(columns, moments, monitor.now_of(slot), 1) if moments else columns


def _find_pair(monitor: BorderMonitor, table: PairTable, slot: int, query: str | int) -> KeyQueryPairs | None:
    """The open pair of the key and the query, or None."""
    pairs = table.at(np.arange(len(monitor.keys)) == slot)
    ids = pairs.ids.tolist() if isinstance(pairs.ids, np.ndarray) else pairs.ids.to_pylist()
    place = next((place for place, each in enumerate(ids) if each == query), None)
    if place is None:
        return None
    only = np.array([place])
    columns = (pairs.slots, pairs.times, pairs.reasons, pairs.ordinals)
    slots, times, reasons, ordinals = (column[only] for column in columns)
    return KeyQueryPairs(slots, [query], times, reasons, ordinals)
