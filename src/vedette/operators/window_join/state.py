"""The state of a window join as bytes: all of it, or the rows that came since.

Rows stand there with the values of the fields that queries use, so that a state fits every later version of the query
set. It does not fit another set: a checksum of the set's history tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedette.data.columns import Column
from vedette.data.keyed_rows import KEY_TYPES
from vedette.data.schema import Type
from vedette.errors import SnapshotError
from vedette.native.damage import check, check_type
from vedette.operators.state_checks import check_clock, check_count, check_history, check_times, read_column
from vedette.operators.window_join.window_rows import StreamRows
from vedette.queries import snapshot

if TYPE_CHECKING:
    from vedette.operators.window_join.monitor import JoinMonitor

_KIND = "window join state"
_NAME, _ANEW = f"the saved {_KIND}", snapshot.start_anew(_KIND)


def save(monitor: JoinMonitor) -> bytes:
    return _to_bytes(monitor, [stream.first for stream in monitor.join.streams], is_delta=False)


def take_delta(monitor: JoinMonitor) -> bytes:
    firsts = monitor.saved_rows
    if firsts is None:
        return _to_bytes(monitor, [stream.first for stream in monitor.join.streams], is_delta=False)
    return _to_bytes(monitor, firsts, is_delta=True)


def load(monitor: JoinMonitor, blob: bytes) -> None:
    content = _check(monitor, blob)
    if content["is_delta"]:
        raise SnapshotError(
            "the bytes are a delta of a state; load what `save` returned, then apply the deltas in order"
        )
    with snapshot.refusing_damage(_NAME, _ANEW):
        _apply(monitor, content)


def apply_delta(monitor: JoinMonitor, blob: bytes) -> None:
    content = _check(monitor, blob)
    if content["is_delta"]:
        for stream, saved in zip(monitor.join.streams, content["streams"], strict=True):
            if stream.end != saved["since"]:
                raise SnapshotError("the bytes are a delta of another state; apply deltas in the order they were taken")
    with snapshot.refusing_damage(_NAME, _ANEW):
        _apply(monitor, content)


def _to_bytes(monitor: JoinMonitor, firsts: list[int], *, is_delta: bool) -> bytes:
    version = monitor.followed[1] if monitor.followed else monitor.queries.version
    streams = []
    for stream, since in zip(monitor.join.streams, firsts, strict=True):
        start = max(since - stream.first, 0)
        streams.append(_stream_content(stream, since, start))
    monitor.saved_rows = [stream.end for stream in monitor.join.streams]
    return snapshot.to_bytes(
        {
            "kind": _KIND,
            "is_delta": is_delta,
            "names": monitor.queries.streams,
            "history": [version, monitor.queries.history_mark(version)],
            "columns": [list(monitor.options.times), list(monitor.options.ids)],
            "time_type": monitor.time_type,
            "id_types": [None if type_ is None else type_.name for type_ in monitor.id_types],
            "clocks": monitor.join.clocks,
            "counts": [monitor.n_late, monitor.join.n_failed, *monitor.n_numbered],
            "streams": streams,
        }
    )


def _stream_content(stream: StreamRows, since: int, start: int) -> dict[str, Any]:
    """The rows from a place on, and where those that are kept begin."""

    def rest(column: Column) -> list[Any]:
        valid = None if column.valid is None else column.valid[start:].copy()
        values = column.values[start:]
        return [values.copy() if hasattr(values, "copy") else values, valid]

    return {
        "since": since,
        "first": stream.first,
        "times": stream.times.values[start:].copy(),
        "ids": None if stream.ids is None else rest(stream.ids.whole()),
        "rows": {name: [str(column.type), *rest(column.whole())] for name, column in stream.columns.items()},
    }


def _check(monitor: JoinMonitor, blob: bytes) -> dict[str, Any]:
    content = snapshot.from_bytes(blob, _KIND)
    if snapshot.kind_of(content) != _KIND:
        raise SnapshotError("the bytes are no state of a window join; give it what `save` returned")
    with snapshot.refusing_damage(_NAME, _ANEW):
        check_history(content["history"])
        check_type(content["names"], list[str], "the streams of a state")
        check_type(content["columns"], list[list[str | None]], "the columns of a state")
        check(len(content["columns"]) == 2, "the columns of a state are missing")
    queries = monitor.queries
    version, mark = content["history"]
    if content["names"] != queries.streams:
        raise SnapshotError(
            f"the state was saved with the streams {', '.join(content['names'])}; these queries have "
            f"{', '.join(queries.streams)}"
        )
    if version > queries.version:
        raise SnapshotError(
            f"the state was saved at version {version} of the queries, which are at version {queries.version} here; "
            f"load the set that was saved with it"
        )
    if queries.history_mark(version) not in (None, mark):  # none where a registry has forgotten it
        raise SnapshotError(
            "the state was saved with another set of queries, whose changes were not the same; load the set that was "
            "saved with it, or begin without a state"
        )
    if content["columns"] != [list(monitor.options.times), list(monitor.options.ids)]:
        raise SnapshotError(
            f"the state was saved with the columns {_shown(content['columns'])}; this join has "
            f"{_shown([list(monitor.options.times), list(monitor.options.ids)])}"
        )
    with snapshot.refusing_damage(_NAME, _ANEW):
        _validate(monitor, content)
    for stream, saved in zip(queries.streams, content["streams"], strict=True):
        for name, (type_, *_) in saved["rows"].items():
            field = queries.schema_of(stream).find(name.partition(".")[2])
            if field is not None and str(field.type) != type_:
                raise SnapshotError(
                    f"the state was saved with {name} as {type_}; these queries have it as {field.type}"
                )
    if content["time_type"] and monitor.time_type not in ("", content["time_type"]):
        raise SnapshotError(
            f"the state was saved with times of type {content['time_type']}; this join has {monitor.time_type}"
        )
    return content


def _validate(monitor: JoinMonitor, content: dict[str, Any]) -> None:
    """Raise DamageError unless content from outside is what `_to_bytes` makes."""
    n_streams, time_type = len(monitor.queries.streams), content["time_type"]
    check_type(content["is_delta"], bool, "whether a state is a delta")
    check_type(time_type, str, "the type of times")
    check(len(content["counts"]) == 2 + n_streams, "the counts of a state are missing")
    for counted in content["counts"]:
        check_count(counted, "a count of a state")
    for each in (content["id_types"], content["clocks"], content["streams"]):
        check(isinstance(each, list) and len(each) == n_streams, "streams of a state are missing")
    for clock in content["clocks"]:
        check_clock(clock, time_type)
    for number, (name, saved) in enumerate(zip(content["id_types"], content["streams"], strict=True)):
        check(name in (None, *KEY_TYPES), "ids are of no type")
        check_count(saved["since"], "the place of a delta")
        check_count(saved["first"], "the number of a row")
        own = monitor.join.streams[number]
        check(not content["is_delta"] or saved["first"] >= own.first, "a delta has rows that were dropped before")
        n = len(saved["times"])
        check_times(saved["times"], time_type, n)
        check(saved["ids"] is not None or n == 0, "rows have no ids")
        if saved["ids"] is not None:
            check(name is not None or n == 0, "ids are of no type")
            values, valid = saved["ids"]
            if n:
                read_column(values, valid, Type(name), n)
            is_known = content["is_delta"] and own.ids is not None and n > 0
            check(not is_known or own.ids is None or own.ids.type.name == name, "ids are of another type")
        for field_name, (type_, values, valid) in saved["rows"].items():
            field = monitor.queries.schema.find(field_name)
            check(field is not None and field.name == field_name, "a state has a field that the rows have not")
            check_type(type_, str, "the type of a field")
            assert field is not None
            if str(field.type) == type_:  # else it is told so
                read_column(values, valid, field.type, n)


def _shown(columns: list[list[str | None]]) -> str:
    times, ids = columns
    return f"time: {', '.join(map(str, times))}, id: {', '.join(map(str, ids))}"


def _apply(monitor: JoinMonitor, content: dict[str, Any]) -> None:
    if not content["is_delta"]:
        monitor.clear()
    if content["time_type"]:
        monitor.set_time_type(content["time_type"])
    for number, name in enumerate(content["id_types"]):
        monitor.id_types[number] = monitor.id_types[number] if name is None else Type(name)
    monitor.n_late, n_failed, *monitor.n_numbered = content["counts"]
    for stream, saved in zip(monitor.join.streams, content["streams"], strict=True):
        stream.drop(min(saved["first"] - stream.first, len(stream)))
        stream.first = saved["first"]
        _append(stream, saved)
    monitor.join.clocks = content["clocks"]
    monitor.join.n_failed = n_failed
    monitor.saved_rows = [stream.end for stream in monitor.join.streams]
    monitor.followed = None  # lists are made anew from the rows with the next step


def _append(stream: StreamRows, saved: dict[str, Any]) -> None:
    types = {name: _read_type(text) for name, (text, *_) in saved["rows"].items()}
    stream.use_fields(types)
    if saved["ids"] is None:
        return
    values, valid = saved["ids"]
    id_type = Type("string") if hasattr(values, "buffers") else Type("bigint")
    rows = {name: Column(*parts) for name, (_, *parts) in saved["rows"].items()}
    stream.append(saved["times"], Column(values, valid), id_type, rows)


def _read_type(text: str) -> Type:
    name, _, sizes = text.partition("(")
    return Type(name, *(int(size) for size in sizes.rstrip(")").split(",") if size))
