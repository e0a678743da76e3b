"""Events as they happen: Server-Sent Events and WebSocket, from any event that the service still has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, WebSocket
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from vedette.errors import VedetteError
from vedette.registry.tokens import READ
from vedette.serve.access import Caller
from vedette.serve.event_feed import Event, EventFeed, EventFilter
from vedette.serve.json_answers import dump
from vedette.serve.live_set import LiveSet
from vedette.serve.operators.operator import EventForm
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import Context, InContext, SetName, refuse, run_stream
from vedette.serve.service import Service

router = APIRouter(prefix="/v1/sets/{set}/events", tags=["rows"])
_HEARTBEAT_SECONDS = 10.0
_MOST_DIGITS = 19  # of 2**63
_Sequence = Annotated[
    int | None, Query(ge=0, lt=2**63, description="the sequence number of the last event that was seen")
]


@router.get(
    "",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Events", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **refusals(400, 404, 409, 422),
    },
)
async def follow(
    context: InContext,
    name: SetName,
    query: Annotated[str | None, Query(description="only events of this query")] = None,
    key: Annotated[str | None, Query(description="only events of this key")] = None,
    owner: Annotated[str | None, Query(description="only events of queries of this owner")] = None,
    after: _Sequence = None,
    last_event_id: Annotated[str | None, Header(description="as `after`; browsers send it to resume")] = None,
) -> StreamingResponse:
    """The events of a set as Server-Sent Events. Each has its sequence number as id.

    Its type is `enter` or `exit` in border monitoring; `pair` in window joins; `emit` or `retract` in band joins and
    moving joins.

    Without `after` or Last-Event-ID, the stream begins with the next event. If events that were asked for are no longer
    kept, the first message has the type `gap`.
    """
    if last_event_id is not None:
        after = _read_sequence(last_event_id, "Last-Event-ID")
    live = await _open(context, name)
    wanted = _filter(context.caller, live.event_form, query, key, owner)
    context.service.take_stream(context.caller)
    stream = _write_stream(read_on(context.service, context.caller, live.feed, wanted, after), live.event_form)
    return _CountedStream(stream, context)


class _CountedStream(StreamingResponse):
    """A stream that is counted until its client has gone."""

    def __init__(self, stream: AsyncIterator[bytes], context: Context) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(stream, media_type="text/event-stream", headers=headers)
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._context.service.give_stream(self._context.caller)


async def follow_by_socket(socket: WebSocket) -> None:
    """The same events by WebSocket, each as one JSON message. Parameters are those of the stream."""
    context = Context(socket)  # type: ignore[arg-type]
    parameters, name = socket.query_params, socket.path_params["set"]
    try:
        after = _read_sequence(parameters["after"], "after") if "after" in parameters else None
        live = await _open(context, name)
        wanted = _filter(context.caller, live.event_form, *(parameters.get(each) for each in ("query", "key", "owner")))
        context.service.take_stream(context.caller)
    except (Problem, VedetteError) as error:
        await refuse(socket, error)
        return
    await run_stream(socket, context, lambda: _send(socket, context, live.feed, wanted, after))


async def _send(socket: WebSocket, context: Context, feed: EventFeed, wanted: EventFilter, after: int | None) -> None:
    async for each in read_on(context.service, context.caller, feed, wanted, after):
        if isinstance(each, Event):
            await socket.send_text(each.text.decode())
        elif each is not None:
            await socket.send_text(dump({"gap": each}).decode())
    with suppress(RuntimeError):
        await socket.close(1001)


async def read_on(
    service: Service, caller: Caller, feed: EventFeed, wanted: EventFilter, after: int | None
) -> AsyncIterator[Event | dict[str, int] | None]:
    """Events after a sequence number, for ever. A dict is a gap: events that are no longer kept. None: still there."""
    place = feed.next - 1 if after is None else min(after, feed.next - 1)
    yield None
    while service.tokens.still_allows(caller):
        events = feed.after(place)
        first = events[0].sequence if events else feed.oldest
        if place + 1 < first:
            yield {"from": place + 1, "to": first - 1}
            place = first - 1
        for event in events:
            if wanted.accepts(event):
                yield event
        if events:
            place = events[-1].sequence
            continue
        if feed.is_closed or service.is_stopping:
            return
        before = feed.next
        await feed.wait(place, _HEARTBEAT_SECONDS)
        if feed.next == before:
            yield None


async def _write_stream(events: AsyncIterator[Event | dict[str, int] | None], form: EventForm) -> AsyncIterator[bytes]:
    async for each in events:
        if each is None:
            yield b": still here\n\n"
        elif isinstance(each, Event):
            kind = form.type_of(each.record).encode()
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (each.sequence, kind, each.text)
        else:
            yield b"event: gap\ndata: %s\n\n" % dump(each)


async def _open(context: Context, name: str) -> LiveSet:
    await context.find(name, READ)
    live = await context.service.open(name)
    await live.call(live.need_feed)
    return live


def _read_sequence(text: str, name: str) -> int:
    if len(text) > _MOST_DIGITS or not text.isdecimal() or int(text) >= 2**63:
        raise Problem(400, "invalid_id", f"{name} must be the sequence number of an event")
    return int(text)


def _filter(caller: Caller, form: EventForm, query: Any, key: Any, owner: Any) -> EventFilter:
    if caller.owner is not None:
        if owner not in (None, caller.owner):
            raise Problem(403, "forbidden", f"the token is confined to queries of the owner {caller.owner!r}")
        owner = caller.owner
    return EventFilter(query, key, owner, form.query, form.keys)
