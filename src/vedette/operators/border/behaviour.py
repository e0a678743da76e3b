"""How each query is reported: its own options, or those of the monitor.

Options are columns by query, so a million different ones cost a lookup per event.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.keyed_rows import TIME_TYPES
from vedette.errors import QueryError
from vedette.native.buffers import empty_int64
from vedette.native.kernels import kernel
from vedette.operators.border.options import MonitorOptions
from vedette.operators.border.silences import Silences
from vedette.queries.attributes import Attributes
from vedette.queries.query_options import DURATIONS, ONCE, PER_QUERY
from vedette.queries.set_view import SetView

NONE = -1  # the duration of a query without the option


class Behaviour:
    """The options of the queries of one version, by their numbers in events."""

    def __init__(self, view: SetView, options: MonitorOptions, time_type: str) -> None:
        self._view, self._options, self._time_type = view, options, time_type
        self.version = view.versions.current
        self._sizes = len(view.ids), len(view.retained)
        self._columns: dict[str, NDArray[Any] | None] = {}
        for name in DURATIONS:
            self._check(name)

    def is_of(self, view: SetView, time_type: str) -> bool:
        """Whether these are the options for a view."""
        same = self._view.attributes is view.attributes and self.version == view.versions.current
        sizes = len(self._view.ids), len(self._view.retained)
        return same and time_type == self._time_type and sizes == self._sizes

    @property
    def holds_back(self) -> bool:
        """Whether events may be held back."""
        return self.has("cooldown") or self.has("once")

    @property
    def delays(self) -> bool:
        """Whether events may be delayed, dropped or held back."""
        return self.holds_back or self.has("dwell") or self.has("margin")

    def has(self, name: str) -> bool:
        """Whether the monitor or some query has the option."""
        default = getattr(self._options, name)
        return default not in (None, False) or self._is_own(name)

    def durations(self, name: str, queries: NDArray[np.int32]) -> NDArray[Any]:
        """The durations of queries in the units of the time column, or NONE."""
        default = self._options.duration(name, self._time_type)
        kind = TIME_TYPES[self._time_type]
        if not self._is_own(name):
            return np.full(len(queries), NONE if default is None else default, kind)
        found: NDArray[Any] = empty_int64(len(queries)).view(kind)
        _look_up(self._column(name), queries, np.array([NONE if default is None else default], kind), found)
        return found

    @cached_property
    def silences(self) -> Silences:
        """How long keys may be silent."""
        own = self._column("expire_after") if self._is_own("expire_after") else None
        default = self._options.duration("expire_after", self._time_type)
        return Silences(self._view, own, default, self._time_type)

    def are_once(self, queries: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether a key is reported once for each of the queries."""
        return self._have_once(True, queries)

    def are_once_per_query(self, queries: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        """Whether each of the queries is reported once for all keys; None if no query is."""
        return self._have_once(PER_QUERY, queries) if self.has_once_per_query else None

    @cached_property
    def has_once_per_query(self) -> bool:
        """Whether the monitor or some query is reported once for all keys."""
        codes = [each.numbers("once") for each in self._attributes]
        is_some = any(each is not None and (each == ONCE.index(PER_QUERY)).any() for each in codes)
        return is_some or self._options.once == PER_QUERY

    def _have_once(self, value: Any, queries: NDArray[np.int32]) -> NDArray[np.bool_]:
        is_default = self._options.once == value
        if not self._is_own("once"):
            return np.full(len(queries), is_default)
        codes = self._column("once")[queries]
        return np.asarray(np.where(np.isnan(codes), is_default, codes == ONCE.index(value)), np.bool_)

    def margins(self, queries: NDArray[Any]) -> NDArray[np.float64] | None:
        """The margins of queries in the units of fields, or NaN for those of the monitor; None if no query has its own.

        A query with a margin in metres has 0.
        """
        if not self._is_own("margin"):
            return None
        own = self._column("margin")[queries]
        return np.where(self._are_in_metres[queries] & ~np.isnan(own), 0.0, own)

    def metres(self, queries: NDArray[Any], default: float) -> NDArray[np.float64]:
        """The margins of queries in metres. `default` is that of the monitor."""
        if not self._is_own("margin"):
            return np.full(len(queries), default)
        own = self._column("margin")[queries]
        return np.where(np.isnan(own), default, np.where(self._are_in_metres[queries], own, 0.0))

    @cached_property
    def _are_in_metres(self) -> NDArray[np.bool_]:
        """By number in events: whether the query has its own margin in metres."""
        return np.concatenate([~each.given_as_numbers("margin") for each in self._attributes])

    def _is_own(self, name: str) -> bool:
        return any(each.numbers(name) is not None for each in self._attributes)

    @property
    def _attributes(self) -> tuple[Attributes, Attributes]:
        return self._view.attributes, self._view.retained.attributes

    def _column(self, name: str) -> NDArray[np.float64]:
        """By number in events: of active queries, then of removed ones."""
        column = self._columns.get(name)
        if column is None:
            columns = (each.numbers(name) for each in self._attributes)
            whole = [
                np.full(len(each), np.nan) if numbers is None else numbers
                for each, numbers in zip(self._attributes, columns, strict=True)
            ]
            column = self._columns[name] = whole[0] if not len(whole[1]) else np.concatenate(whole)
        return column

    def _check(self, name: str) -> None:
        """Raise QueryError unless the durations of active queries fit the time column."""
        attributes = self._view.attributes
        numbers = attributes.numbers(name)
        if numbers is None or not self._time_type:
            return
        active = ~np.isnan(numbers) & ~self._view.versions.is_removed
        is_number = attributes.given_as_numbers(name)
        is_wrong = ~is_number if self._time_type != "timestamp" else is_number
        if self._time_type == "bigint":
            is_wrong = is_wrong | (numbers != np.floor(numbers))
        wrong = np.flatnonzero(active & is_wrong)
        if len(wrong):
            (query_id,) = self._view.ids.at(wrong[:1].astype(np.int32))
            value = attributes.options_at(int(wrong[0]))[name]
            needs = {
                "timestamp": "a timestamp: give a duration such as '5 minutes'",
                "bigint": "a whole number: give a whole number in its unit",
                "double": "a number: give a number in its unit",
            }[self._time_type]
            words = f"is {value!r}, but the time column {self._options.time!r} is {needs}"
            raise QueryError(words, option=name).in_query(query_id)


@kernel
def _look_up(
    column: NDArray[np.float64], queries: NDArray[np.int32], default: NDArray[Any], found: NDArray[Any]
) -> None:
    """The numbers of queries, or the default, in the type of `found`."""
    for each in range(len(queries)):
        number = column[queries[each]]
        if np.isnan(number):
            found[each] = default[0]
        else:
            found[each] = number
