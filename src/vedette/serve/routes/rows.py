"""The hot routes: rows that are matched, and rows that are monitored.

They are plain Starlette endpoints, because FastAPI halves the rate of small requests. Their part of the OpenAPI
document is written by hand below.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from vedette.errors import UnknownSetError, VedetteError
from vedette.operators.border.event_metadata import metadata_at
from vedette.operators.query_metadata import find_metadata
from vedette.registry.tokens import READ, WRITE
from vedette.serve.access import OWNER, Caller
from vedette.serve.arrow_streams import write_stream
from vedette.serve.bodies import ARROW, JSON, LINES, MEDIA_TYPES, RowsOf, form_of, wanted_form
from vedette.serve.json_answers import dump
from vedette.serve.live_set import Accepted, LiveSet
from vedette.serve.problems import Problem, problem_of, refusals
from vedette.serve.routes.shared import refuse, run_until_one_ends
from vedette.serve.row_log import Body
from vedette.serve.service import Service, service_of

_MOST_UNANSWERED = 256  # messages of a WebSocket; then the service reads on after its answers
_MOST_SIDE_BYTES = 255  # as in the log
MATCH_PATH, ROWS_PATH = "/v1/sets/{set}/match", "/v1/sets/{set}/rows"
_BEFORE, _AFTER = ROWS_PATH.split("{set}")


async def match(request: Request) -> Response:
    service, caller = service_of(request), request.scope["state"]["caller"]
    name = request.path_params["set"]
    caller.need(READ, name)
    form = form_of(request.headers.get("content-type"))
    wanted = wanted_form(request.headers.get("accept"), form)
    body = await request.body()
    n_estimated = _estimate_rows(form, body)
    service.check_rate(caller, n_estimated)
    live = await _open(service.open, name)
    n_rows, n_matches, answer = await live.call(lambda: _match(live, caller, form, wanted, body))
    service.correct_rate(caller, n_rows - n_estimated)
    service.metrics.rows.labels(name, "match").inc(n_rows)
    service.metrics.matches.labels(name).inc(n_matches)
    return Response(answer, media_type=MEDIA_TYPES[wanted])


class Rows:
    """`POST .../rows`: plain ASGI, since Starlette's layers take as long as the rest of a request with one row."""

    path = ROWS_PATH  # for metrics

    def __init__(self, service: Service) -> None:
        self._service = service

    @staticmethod
    def is_asked(scope: Scope) -> bool:
        """Whether a request is for this route."""
        path: str = scope.get("path", "")
        is_path = path.startswith(_BEFORE) and path.endswith(_AFTER) and path.count("/") == ROWS_PATH.count("/")
        return is_path and len(path) > len(_BEFORE) + len(_AFTER) and scope.get("method") == "POST"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["endpoint"] = self
        status, headers = 200, {}
        try:
            answer = await self._answer(scope, receive)
        except (Problem, VedetteError) as error:
            problem = error if isinstance(error, Problem) else problem_of(error)
            status, headers, answer = problem.status_code, dict(problem.headers or {}), dump(problem.content)
        own = [(b"content-length", b"%d" % len(answer)), (b"content-type", b"application/json")]
        own += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": own})
        await send({"type": "http.response.body", "body": answer})

    async def _answer(self, scope: Scope, receive: Receive) -> bytes:
        service, caller, headers = self._service, scope["state"]["caller"], scope["state"]["headers"]
        name = scope["path"][len(_BEFORE) : -len(_AFTER)]
        caller.need_all_owners(WRITE, name)
        form = form_of(headers.get("content-type"))
        body = await _read_body(receive)
        n_estimated = _estimate_rows(form, body)
        service.check_rate(caller, n_estimated)
        live = service.live.get(name) or await _open(service.open, name)
        side = _side_of(Request(scope)) if scope["query_string"] else ""
        accepted = await live.accept(Body(form, body, side))
        service.correct_rate(caller, accepted.n_rows - n_estimated)
        return dump(_to_answer(service, name, accepted))


async def _read_body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body") and message["type"] == "http.request":
        return body
    pieces = [body]
    while message.get("more_body"):
        message = await receive()
        pieces.append(message.get("body", b""))
    if message["type"] == "http.disconnect":
        raise Problem(400, "disconnected", "the client has gone")
    return b"".join(pieces)


async def rows(request: Request) -> Response:
    raise AssertionError("requests for rows do not pass through Starlette")


async def rows_by_socket(socket: WebSocket) -> None:
    """Rows as messages: a text is JSON, bytes are an Arrow stream. Each gets an answer, in the order of the messages.

    Clients need not wait for an answer before they send on, so a connection is not limited by its delay.
    """
    service, caller = service_of(socket), socket.scope["state"]["caller"]
    name = socket.path_params["set"]
    try:
        caller.need_all_owners(WRITE, name)
        side = _side_of(socket)
        live = await _open(service.open, name)
        service.take_stream(caller)
    except (Problem, VedetteError) as error:
        await refuse(socket, error)
        return
    answers: asyncio.Queue[asyncio.Future[Accepted]] = asyncio.Queue(_MOST_UNANSWERED)
    try:
        await socket.accept()
        await run_until_one_ends(
            _read_rows(socket, service, caller, live, side, answers), _send_answers(socket, service, name, answers)
        )
        if not service.tokens.still_allows(caller):
            with suppress(WebSocketDisconnect, RuntimeError):  # the client may have gone
                await socket.close(4401, "the token is revoked or expired")
    finally:
        service.give_stream(caller)


async def _read_rows(
    socket: WebSocket,
    service: Service,
    caller: Caller,
    live: LiveSet,
    side: str,
    answers: asyncio.Queue[asyncio.Future[Accepted]],
) -> None:
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        if not service.tokens.still_allows(caller):
            return
        text = message.get("text")
        form, data = (ARROW, message["bytes"]) if text is None else (JSON, text.encode(errors="replace"))
        body = Body(form, data, side)
        await answers.put(_accept(service, caller, live, body))


def _accept(service: Service, caller: Caller, live: LiveSet, body: Body) -> asyncio.Future[Accepted]:
    try:
        n_estimated = _estimate_rows(body.form, body.data)
        service.check_rate(caller, n_estimated)
        future = _counted(service, live, body)
    except Problem as problem:
        refused: asyncio.Future[Accepted] = asyncio.get_running_loop().create_future()
        refused.set_exception(problem)
        return refused

    def correct(done: asyncio.Future[Accepted]) -> None:
        if not done.cancelled() and done.exception() is None:
            service.correct_rate(caller, done.result().n_rows - n_estimated)

    future.add_done_callback(correct)
    return future


def _counted(service: Service, live: LiveSet, body: Body) -> asyncio.Future[Accepted]:
    """The answer to a message, whose bytes count until it is there."""
    n_bytes = len(body.data)
    service.n_body_bytes += n_bytes
    try:
        service.check_waiting()
        future = live.accept(body)
    except BaseException:
        service.n_body_bytes -= n_bytes
        raise

    def forget(_: asyncio.Future[Accepted]) -> None:
        service.n_body_bytes -= n_bytes

    future.add_done_callback(forget)
    return future


async def _send_answers(
    socket: WebSocket, service: Service, name: str, answers: asyncio.Queue[asyncio.Future[Accepted]]
) -> None:
    while True:
        future = await answers.get()
        try:
            answer = _to_answer(service, name, await future)
        except (VedetteError, Problem) as error:
            answer = (error if isinstance(error, Problem) else problem_of(error)).content
        await socket.send_text(dump(answer).decode())


def _side_of(request: HTTPConnection) -> str:
    """The stream of all rows of a request, if it names one."""
    side = request.query_params.get("side", "")
    if len(side.encode(errors="replace")) > _MOST_SIDE_BYTES:
        raise Problem(400, "invalid_rows", f"the name of a side has at most {_MOST_SIDE_BYTES} bytes")
    return side


def _to_answer(service: Service, name: str, accepted: Accepted) -> dict[str, Any]:
    n_rows, n_events = service.metrics.of_rows(name)
    n_rows.inc(accepted.n_rows)
    n_events.inc(len(accepted.events))
    return accepted.to_record()


async def _open(open_set: Callable[[str], Any], name: str) -> LiveSet:
    try:
        live: LiveSet = await open_set(name)
        return live
    except UnknownSetError:
        raise Problem(404, "unknown_set", f"no set {name!r}") from None


def _estimate_rows(form: int, body: bytes) -> int:
    """About how many rows a body has, before it is read. Each row of JSON is an object."""
    return max(1, len(body) // 100 if form == ARROW else body.count(b"{"))


def _match(live: LiveSet, caller: Caller, form: int, wanted: int, body: bytes) -> tuple[int, int, bytes]:
    """The number of rows, of matches, and the answer. On the thread of the set."""
    rows_of: RowsOf = live.rows_of
    queries = live.queries
    read = rows_of.read(form, body)
    if isinstance(read, dict) and wanted == JSON and caller.owner is None:
        ids: list[Any] = queries.match_one(rows_of.to_row(read))
        return 1, len(ids), dump({"version": queries.version, "queries": ids})
    is_one = isinstance(read, dict)
    table = rows_of.to_table(read)
    found = queries.match(table)
    starts, positions = found.starts, found.positions
    if caller.owner is not None:
        starts, positions = _only_of(caller.owner, queries.view(), starts, positions)
    n_rows, n_matches = table.num_rows, len(positions)
    matched = queries.ids.take(pa.array(positions))
    if wanted == ARROW:
        numbers = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(starts))
        return n_rows, n_matches, write_stream(pa.table({"row": numbers, "query": matched}))
    ids = matched.to_pylist()
    lists = [ids[starts[row] : starts[row + 1]] for row in range(n_rows)]
    if wanted == LINES:
        return n_rows, n_matches, b"".join(dump({"queries": each}) + b"\n" for each in lists)
    own = {"queries": lists[0]} if is_one else {"matches": lists}
    return n_rows, n_matches, dump({"version": queries.version, **own})


def _only_of(owner: str, view: Any, starts: Any, positions: Any) -> tuple[Any, Any]:
    """The matches of an owner's queries."""
    owners = find_metadata((OWNER,), positions, lambda queries: metadata_at(queries, view))[OWNER]
    is_own = np.array([each == owner for each in owners.to_pylist()], bool)
    kept = np.concatenate([[0], np.cumsum(is_own)])
    return kept[starts], positions[is_own]


ROUTES = [
    Route(MATCH_PATH, match, methods=["POST"]),
    Route(ROWS_PATH, rows, methods=["POST"]),  # for other methods: they are refused here
    WebSocketRoute(f"{ROWS_PATH}/ws", rows_by_socket),
]
match.path = MATCH_PATH  # type: ignore[attr-defined]  # for metrics

_ROW = {"type": "object", "example": {"symbol": "IBM", "price": 39.5}}
_BODY = {
    "required": True,
    "content": {
        MEDIA_TYPES[JSON]: {"schema": {"anyOf": [_ROW, {"type": "array", "items": _ROW}]}},
        MEDIA_TYPES[LINES]: {"schema": {"type": "string"}},
        MEDIA_TYPES[ARROW]: {"schema": {"type": "string", "format": "binary"}},
    },
    "description": 'Rows. Rows of a join have their stream: {"left": [...], "right": [...]}, or the parameter `side`.',
}
_SET = {"name": "set", "in": "path", "required": True, "schema": {"type": "string"}}
_SIDE = {
    "name": "side",
    "in": "query",
    "schema": {"type": "string"},
    "description": "the stream of a join that all rows of the body are of",
}
_IDS = {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}
_MATCHED = {
    "type": "object",
    "required": ["version"],
    "properties": {
        "version": {"type": "integer"},
        "queries": {**_IDS, "description": "if the body is one row"},
        "matches": {"type": "array", "items": _IDS, "description": "if the body is a list: one item per row"},
    },
}
_ACCEPTED = {
    "type": "object",
    "required": ["rows", "version", "sequence", "events"],
    "properties": {
        "rows": {"type": "integer", "description": "rows that were accepted"},
        "version": {"type": "integer", "description": "of the queries that they were evaluated with"},
        "sequence": {"type": "integer", "description": "of the last event of the set so far"},
        "events": {"type": "array", "items": {"type": "object"}, "description": "the events of the keys of these rows"},
    },
}


def describe() -> dict[str, Any]:
    """The paths of these routes for the OpenAPI document."""
    statuses = {str(status): each for status, each in refusals(400, 404, 409, 415, 422).items()}
    matched = {
        "description": "The queries that each row matches",
        "content": {
            MEDIA_TYPES[JSON]: {"schema": _MATCHED},
            MEDIA_TYPES[LINES]: {"schema": {"type": "string"}},
            MEDIA_TYPES[ARROW]: {"schema": {"type": "string", "format": "binary"}},
        },
    }
    accepted = {"description": "The rows are in the log", "content": {MEDIA_TYPES[JSON]: {"schema": _ACCEPTED}}}

    def operation(name: str, summary: str, answer: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
        return {
            "post": {
                "operationId": name,
                "tags": ["rows"],
                "summary": summary,
                "parameters": [_SET, *parameters],
                "requestBody": _BODY,
                "responses": {"200": answer, **statuses},
            }
        }

    return {
        MATCH_PATH: operation("match", "The queries that each row matches", matched),
        ROWS_PATH: operation("rows", "Border monitoring, or a join: the events of these rows", accepted, _SIDE),
    }
