"""The fields of a saved window join: the rows of all windows, with the fields that queries use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vedette.data.columns import Column
from vedette.data.keyed_rows import KEY_TYPES
from vedette.data.list_texts import load_column, save_column
from vedette.data.schema import Type
from vedette.errors import SnapshotError, shortened
from vedette.native.damage import check, check_type
from vedette.operators.carried_state import read_carried, validate_carried, write_carried
from vedette.operators.state import Content, History, MonitorState, is_whole
from vedette.operators.state_checks import check_clock, check_count, check_time_type, check_times, read_column
from vedette.operators.window_join.window_rows import StreamRows

if TYPE_CHECKING:
    from vedette.operators.window_join.monitor import JoinMonitor


class JoinState(MonitorState["JoinMonitor"]):
    kind = "window join state"

    def options(self, monitor: JoinMonitor) -> Content:
        options = monitor.options
        return {"streams": list(monitor.queries.streams), "time": list(options.times), "id": list(options.ids)}

    def history(self, monitor: JoinMonitor) -> tuple[History, int]:
        return monitor.queries, monitor.followed[1] if monitor.followed else monitor.queries.version

    def write(self, monitor: JoinMonitor, *, only_changes: bool) -> Content:
        streams = monitor.join.streams
        since = monitor.saved_rows if only_changes else None
        parts = {}
        for number, (name, stream) in enumerate(zip(monitor.queries.streams, streams, strict=True)):
            parts[name] = {"is_whole": since is None} | _write_stream(stream, since[number] if since else stream.first)
        monitor.saved_rows = [stream.end for stream in streams]
        return {
            "time_type": monitor.time_type,
            "id_types": [None if type_ is None else type_.name for type_ in monitor.id_types],
            "clocks": monitor.join.clocks,
            "counts": [monitor.n_late, monitor.join.n_failed, *monitor.n_numbered],
            "parts": parts,
        }

    def validate(self, monitor: JoinMonitor, content: Content) -> None:
        names, time_type = monitor.queries.streams, content["time_type"]
        check_type(time_type, str, "the type of times")
        check(list(content["parts"]) == list(names), "the streams of a state are incomplete")
        check(len({part["is_whole"] for part in content["parts"].values()}) == 1, "only some streams are whole")
        check(len(content["counts"]) == 2 + len(names), "the counts of a state are incomplete")
        for counted in content["counts"]:
            check_count(counted, "a count of a state")
        for each in (content["id_types"], content["clocks"]):
            check(isinstance(each, list) and len(each) == len(names), "the streams of a state are incomplete")
        for clock in content["clocks"]:
            check_clock(clock, time_type)
        for stream, id_type, part in zip(
            monitor.join.streams, content["id_types"], content["parts"].values(), strict=True
        ):
            _validate_stream(monitor, stream, part, id_type, time_type)

    def check_fits(self, monitor: JoinMonitor, content: Content) -> None:
        for stream, (stream_name, part) in zip(monitor.join.streams, content["parts"].items(), strict=True):
            for name, (type_, *_) in part["rows"].items():
                field = monitor.queries.schema_of(stream_name).find(name.partition(".")[2])
                if field is not None and str(field.type) != type_:
                    raise SnapshotError(
                        f"the state was saved with {name} as {shortened(type_, 40)}; here it is {field.type}"
                    )
            if not is_whole(content) and stream.end != part["since"]:
                raise SnapshotError("the bytes are a delta of another state; apply deltas in the order they were taken")
        check_time_type(content["time_type"], monitor.time_type)

    def apply(self, monitor: JoinMonitor, content: Content) -> None:
        if content["time_type"]:
            monitor.set_time_type(content["time_type"])
        for number, name in enumerate(content["id_types"]):
            monitor.id_types[number] = monitor.id_types[number] if name is None else Type(name)
        monitor.n_late, n_failed, *monitor.n_numbered = content["counts"]
        for number, (stream, part) in enumerate(zip(monitor.join.streams, content["parts"].values(), strict=True)):
            monitor.join.drop_until(number, part["first"])
            _append(stream, part)
        monitor.join.clocks = content["clocks"]
        monitor.join.n_failed = n_failed
        monitor.saved_rows = [stream.end for stream in monitor.join.streams]
        if is_whole(content):
            monitor.followed = None  # the next step builds its lists from the rows
        monitor.is_behind = True


def _write_stream(stream: StreamRows, since: int) -> Content:
    """The rows from number `since` on, and the number of the first row that is still kept."""
    start = max(since - stream.first, 0)
    return {
        "since": since,
        "first": stream.first,
        "times": stream.times.values[start:].copy(),
        "ids": None if stream.ids is None else _rest(stream.ids.whole(), start),
        "rows": {name: [str(column.type), *_rest(column.whole(), start)] for name, column in stream.columns.items()},
        **write_carried(None if stream.carried is None else stream.carried.whole().slice(start)),
    }


def _rest(column: Column, start: int) -> list[Any]:
    """A copy of the values from `start` on, as they are saved."""
    values, valid = save_column(column.slice(start, len(column)))
    return [values.copy() if isinstance(values, np.ndarray) else values, None if valid is None else valid.copy()]


def _validate_stream(monitor: JoinMonitor, own: StreamRows, part: Content, id_type: Any, time_type: str) -> None:
    is_delta, n = not part["is_whole"], len(part["times"])
    check(id_type in (None, *KEY_TYPES), "the type of ids is invalid")
    check_count(part["since"], "the first row of a delta")
    check_count(part["first"], "the number of a row")
    check(not is_delta or part["first"] >= own.first, "a delta has rows that were dropped before")
    check_times(part["times"], time_type, n)
    validate_carried(part, n)
    check(part["ids"] is not None or n == 0, "rows have no ids")
    if part["ids"] is not None:
        values, valid = part["ids"]
        check(id_type is not None or n == 0, "ids have no type")
        if n:
            read_column(values, valid, Type(id_type), n)
        is_known = is_delta and own.ids is not None and n > 0
        check(not is_known or own.ids is None or own.ids.type.name == id_type, "ids have the wrong type")
    for name, (type_, values, valid) in part["rows"].items():
        field = monitor.queries.schema.find(name)
        check(field is not None and field.name == name, "a state has an unknown field")
        check_type(type_, str, "the type of a field")
        assert field is not None
        if str(field.type) == type_:  # otherwise `check_fits` refuses it
            read_column(values, valid, field.type, n)


def _append(stream: StreamRows, part: Content) -> None:
    stream.use_fields({name: _read_type(text) for name, (text, *_) in part["rows"].items()})
    if part["ids"] is None:
        return
    values, valid = part["ids"]
    id_type = Type("string") if hasattr(values, "buffers") else Type("bigint")
    rows = {name: load_column(values, valid, _read_type(text)) for name, (text, values, valid) in part["rows"].items()}
    carried = stream.carried
    table = None if carried is None else read_carried(part, carried.schema.names, len(part["times"]))
    stream.append(part["times"], Column(values, valid), id_type, rows, table)


def _read_type(text: str) -> Type:
    name, _, sizes = text.partition("(")
    return Type(name, *(int(size) for size in sizes.rstrip(")").split(",") if size))
