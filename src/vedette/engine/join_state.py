"""The state of a window join as bytes: all of it, or the rows that came since.

Rows stand there with the values of the fields that queries use, so that a state fits every later version of the query
set. It does not fit another set: a checksum of the set's history tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vedette.columns import Column
from vedette.engine import snapshot
from vedette.errors import SnapshotError
from vedette.operators.window_rows import StreamRows
from vedette.schema import Type

if TYPE_CHECKING:
    from vedette.engine.join_monitor import JoinMonitor

_KIND = "window join state"


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
    _apply(monitor, content)


def apply_delta(monitor: JoinMonitor, blob: bytes) -> None:
    content = _check(monitor, blob)
    if content["is_delta"]:
        for stream, saved in zip(monitor.join.streams, content["streams"], strict=True):
            if stream.end != saved["since"]:
                raise SnapshotError("the bytes are a delta of another state; apply deltas in the order they were taken")
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
    if content.get("kind") != _KIND:
        raise SnapshotError("the bytes are no state of a window join; give it what `save` returned")
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
