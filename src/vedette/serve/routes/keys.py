"""The keys of a monitor: their last rows, the recent values of a field, and both as they change."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from fastapi import APIRouter, Query, WebSocket
from starlette.concurrency import run_in_threadpool

from vedette.data.boxes import UNBOUNDED, Ranges
from vedette.errors import QueryError, RowError, UnknownQueryError, VedetteError
from vedette.language.compiler import compile_texts
from vedette.registry.kinds import BORDER
from vedette.registry.tokens import READ
from vedette.serve.json_answers import JsonAnswer, dump
from vedette.serve.key_rows import Area, KeyChanges, list_keys
from vedette.serve.live_set import LiveSet
from vedette.serve.models import KeyPage, RecentValues
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import Context, InContext, SetName, read_id, refuse, run_stream

router = APIRouter(prefix="/v1/sets/{set}", tags=["rows"])
_EVERY_SECONDS = 0.2  # between two messages about keys
_MOST_FIELDS = 20


@router.get("/keys", response_model=KeyPage, responses=refusals(404, 409, 422))
async def show_keys(
    context: InContext,
    name: SetName,
    search: Annotated[str | None, Query(max_length=1000, description="characters of the key, ignoring case")] = None,
    after: Annotated[int, Query(ge=-1, lt=2**31, description="`next` of the previous page")] = -1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonAnswer:
    """The last row of each key of the monitor: the fields that queries use. In the order of their first rows."""
    live = await _open(context, name)
    return JsonAnswer(await live.call(lambda: list_keys(live.need_monitor().monitor, search, after, limit)))


@router.get("/values", response_model=RecentValues, responses=refusals(400, 404, 409, 422))
async def show_values(
    context: InContext,
    name: SetName,
    key: Annotated[str, Query(max_length=1000)],
    field: Annotated[str, Query(max_length=1000, description="a field of the rows")],
    query: Annotated[
        str | None, Query(max_length=1000, description="a query, whose ranges of the field are shown")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JsonAnswer:
    """The recent values of a field of a key, oldest first: of the rows that the service has accepted since its start,
    the last 16 MiB. With a query, also the ranges of the field in which it can match.
    """
    live = await _open(context, name)
    ranges = None if query is None else await _read_ranges(context, name, query, field)

    def prepare() -> tuple[Any, str, str, str]:
        options = live.need_monitor().monitor.options
        fields = [live.queries.schema.find(each) for each in (field, options.time, options.key)]
        if fields[0] is None:
            raise RowError(live.queries.schema.unknown_field(field), field=field)
        return live.rows_of, *(each.name for each in fields if each is not None)

    rows_of, field, time, key_field = await live.call(prepare)
    names = list(dict.fromkeys([time, field]))
    found: pa.Table = await run_in_threadpool(live.recent.values, rows_of, names, key_field, key, limit)
    values = found[field].to_pylist()
    return JsonAnswer(
        {"key": key, "field": field, "times": found[time].to_pylist(), "values": values, "ranges": ranges}
    )


async def _read_ranges(context: Context, name: str, query_id: str, field: str) -> list[list[float | None]]:
    """The ranges of a field in the boxes of a query's text. A bound that does not exist is null."""
    info = await context.find(name, READ)
    schema = info.read_schema()
    query = await run_in_threadpool(context.service.registry.get, name, read_id(query_id, info))
    if not context.caller.sees(query.metadata) or query.text is None or schema is None:
        raise UnknownQueryError(f"no query {query_id!r} in set {name!r}")
    text = query.text

    def compile_ranges() -> list[list[float | None]]:
        found = set()
        for block in compile_texts([text], schema, info.time_zone, views=False).blocks:
            ranges = next((own for each, own in block.ranges.items() if each.lower() == field.lower()), None)
            if isinstance(ranges, Ranges) and np.issubdtype(ranges.lows.dtype, np.number):
                lows, highs = ranges.lows.tolist(), ranges.highs.tolist()
                for place in range(len(ranges)):
                    low = None if ranges.low_ends[place] == UNBOUNDED else lows[place]
                    high = None if ranges.high_ends[place] == UNBOUNDED else highs[place]
                    found.add((low, high))
        return [list(each) for each in sorted(found, key=str)]

    return await run_in_threadpool(compile_ranges)


async def follow_keys(socket: WebSocket) -> None:
    """Keys as they change: first those that there are, then, five times a second, those that have changed.

    Parameters: `fields` (names with commas), and `bbox` with `x` and `y` (the fields of its sides), or `key`.
    """
    context = Context(socket)  # type: ignore[arg-type]
    try:
        live = await _open(context, socket.path_params["set"])
        changes = _read_wanted(socket.query_params)
        await live.call(lambda: changes.look(live.need_monitor().monitor, -2))  # raises if a field is unknown
        changes = _read_wanted(socket.query_params)
        context.service.take_stream(context.caller)
    except (Problem, VedetteError) as error:
        await refuse(socket, error)
        return
    await run_stream(socket, context, lambda: _send(socket, context, live, changes))


async def _send(socket: WebSocket, context: Context, live: LiveSet, changes: KeyChanges) -> None:
    service = context.service

    def look() -> dict[str, Any] | None:
        monitor = live.need_monitor()
        return changes.look(monitor.monitor, monitor.n_batches)

    while service.tokens.still_allows(context.caller) and not (service.is_stopping or live.feed.is_closed):
        try:
            found = await live.call(look)
        except (Problem, VedetteError):  # the monitor was deleted
            return
        if found is not None and (found["keys"] or found["gone"] or found["again"]):
            await socket.send_text(dump(found).decode())
        await asyncio.sleep(_EVERY_SECONDS)


def _read_wanted(parameters: Any) -> KeyChanges:
    fields = [each.strip() for each in parameters.get("fields", "").split(",") if each.strip()]
    if len(fields) > _MOST_FIELDS:
        raise QueryError(f"{len(fields)} fields; at most {_MOST_FIELDS} fit", option="fields")
    area = None
    if "bbox" in parameters:
        area = Area(parameters.get("x", "lon"), parameters.get("y", "lat"), read_bounds(parameters["bbox"]))
    return KeyChanges(fields, area, parameters.get("key"))


def read_bounds(text: str) -> tuple[float, float, float, float]:
    """West, south, east and north, from a text such as 2.5,49.5,6.4,51.5."""
    try:
        west, south, east, north = (float(each) for each in text.split(","))
    except ValueError:
        west, south, east, north = 1.0, 0.0, 0.0, 0.0
    if not (west <= east and south <= north):
        raise QueryError("must be west,south,east,north in this order, such as 2.5,49.5,6.4,51.5", option="bbox")
    return west, south, east, north


async def _open(context: Context, name: str) -> LiveSet:
    info = await context.find(name, READ)
    if context.caller.owner is not None:
        raise Problem(403, "forbidden", "rows are for the queries of all owners; the token is confined to one")
    if info.kind != BORDER:
        raise Problem(409, "other_kind", f"set {name!r} is of kind {info.kind}; keys need kind border")
    return await context.service.open(name)
