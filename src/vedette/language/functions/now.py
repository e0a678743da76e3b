"""Now: the moment of the batch. In trees it is a field; `data/moments.py` adds its column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedette.data.moments import NOW
from vedette.language.expressions import DATE, TIMESTAMP, TIMESTAMP_NTZ, Typed, Written
from vedette.language.functions.function import Function

if TYPE_CHECKING:
    from vedette.language.analysis import Analyser

MOMENTS = ("current_timestamp", "current_date")  # may be written without parentheses


def type_now(analyser: Analyser, node: Written) -> Typed:
    if analyser.schema.streams:
        analyser.refuse(
            node,
            "now() is not supported in queries over several streams; compare the times of the streams with each other, "
            "or let the window limit them",
        )
    if analyser.schema.find(NOW) is not None:
        analyser.refuse(node, f"now() is not supported over a schema with a field {NOW!r}; rename the field")
    return analyser.made(node, "field", TIMESTAMP, name=NOW)


def type_today(analyser: Analyser, node: Written) -> Typed:
    return analyser.cast(node, type_now(analyser, node), DATE)


def type_local_now(analyser: Analyser, node: Written) -> Typed:
    return analyser.cast(node, type_now(analyser, node), TIMESTAMP_NTZ)


FUNCTIONS = (
    Function("now()", type_now, None, "the moment of the batch (see [Now](#now))", ("current_timestamp",)),
    Function("current_date()", type_today, None, "its date, in the set's time zone", ("curdate",)),
    Function("localtimestamp()", type_local_now, None, "its local time, as a `timestamp_ntz`"),
)
