"""What routes need: the service and the caller of a request, as parameters of FastAPI."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request, WebSocket, WebSocketDisconnect
from starlette.concurrency import run_in_threadpool

from vedette.data.ids import INTEGER
from vedette.errors import UnknownQueryError, UnknownSetError, VedetteError
from vedette.registry.read.set_info import SetInfo
from vedette.serve.access import Caller
from vedette.serve.editing import Editor
from vedette.serve.problems import Problem, problem_of, refuse_socket
from vedette.serve.service import Service, service_of

SetName = Annotated[str, Path(alias="set", description="the name of the set")]
QueryId = Annotated[str, Path(alias="id", description="the id of the query")]
ExpectVersion = Annotated[
    int | None,
    Query(ge=0, lt=2**63, description="change nothing, and answer 409, if the set is at another version"),
]


class Context:
    """The service, and who asks."""

    def __init__(self, request: Request) -> None:
        self.service: Service = service_of(request)
        self.caller: Caller = request.scope["state"]["caller"]

    async def find(self, name: str, role: str) -> SetInfo:
        """The set, if the caller may do this with it."""
        self.caller.need(role, name)
        try:
            return await run_in_threadpool(self.service.registry.end_due, name)
        except UnknownSetError:
            raise Problem(404, "unknown_set", f"no set {name!r}") from None

    def editor(self, name: str) -> Editor:
        service = self.service
        live = service.live.get(name)
        return Editor(service.registry, self.caller, name, service.options, None if live is None else live.recent)


InContext = Annotated[Context, Depends(Context)]


def read_id(text: str, info: SetInfo) -> Any:
    """An id of a path, with the type of the set's ids."""
    if info.id_kind != INTEGER:
        return text
    try:
        return int(text)
    except ValueError:
        raise UnknownQueryError(f"no query {text!r} in set {info.name!r}: its ids are integers") from None


async def refuse(socket: WebSocket, error: Problem | VedetteError) -> None:
    """Refuse a socket that cannot be opened."""
    problem = error if isinstance(error, Problem) else problem_of(error)
    await refuse_socket(problem, socket.scope, socket._send)


async def run_stream(socket: WebSocket, context: Context, send: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Accept a socket for which a stream was taken, and send until the client has gone. Then the stream is free."""
    try:
        await socket.accept()
        await run_until_one_ends(send(), _wait_until_gone(socket))
    finally:
        context.service.give_stream(context.caller)


async def _wait_until_gone(socket: WebSocket) -> None:
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass  # what clients send means nothing


async def run_until_one_ends(*sides: Coroutine[Any, Any, None]) -> None:
    """Run the reader and the writer of a socket until one ends or the client has gone. Then the other is cancelled."""
    tasks = [asyncio.create_task(side) for side in sides]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    with suppress(WebSocketDisconnect):
        for task in ended:
            task.result()
