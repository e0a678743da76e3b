"""Deliveries of a set's events to webhooks, and dead letters."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.concurrency import run_in_threadpool

from vedette.delivery.dead_letters import Letter
from vedette.delivery.redelivery import choose, redeliver
from vedette.delivery.urls import host_of
from vedette.registry.tokens import ADMIN
from vedette.serve.deliveries.delivery import in_thread
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import DeliveryBody, DeliveryRecord, Dropped, LetterChoice, LetterRecord, Redelivered
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import InContext, SetName
from vedette.serve.service import Service

router = APIRouter(tags=["deliveries"])
_PATH = "/v1/sets/{set}/deliveries"
_Name = Annotated[str, Path(max_length=100, description="the name of the delivery")]


@router.get(_PATH, response_model=list[DeliveryRecord], responses=refusals(404))
async def list_deliveries(context: InContext, name: SetName) -> JsonAnswer:
    """The deliveries of a set, with their status."""
    await context.find(name, ADMIN)
    await context.service.deliveries.wait_started()
    return JsonAnswer([each.to_record() for each in context.service.deliveries.list(name)])


@router.get(_PATH + "/{delivery}", response_model=DeliveryRecord, responses=refusals(404, 422))
async def show_delivery(context: InContext, name: SetName, delivery: _Name) -> JsonAnswer:
    """A delivery, with its status."""
    await context.find(name, ADMIN)
    await context.service.deliveries.wait_started()
    return JsonAnswer(context.service.deliveries.find(name, delivery).to_record())


@router.put(_PATH + "/{delivery}", response_model=DeliveryRecord, responses=refusals(400, 404, 409, 422))
async def put_delivery(context: InContext, name: SetName, delivery: _Name, body: DeliveryBody) -> JsonAnswer:
    """Send the events of a set to a URL, from the next event on; or change how they are sent."""
    await context.find(name, ADMIN)
    if not delivery.isprintable():
        raise Problem(400, "invalid_request", "the name of a delivery must be printable")
    live = await context.service.open(name)
    made = await context.service.deliveries.put(live, delivery, body.model_dump())
    return JsonAnswer(made.to_record())


@router.delete(_PATH + "/{delivery}", status_code=204, responses=refusals(404, 422))
async def delete_delivery(context: InContext, name: SetName, delivery: _Name) -> None:
    """End a delivery. Its dead letters stay."""
    await context.find(name, ADMIN)
    await context.service.deliveries.wait_started()
    await context.service.deliveries.delete(await context.service.open(name), delivery)


@router.get("/v1/dead-letters", response_model=list[LetterRecord], responses=refusals(422))
async def list_letters(
    context: InContext,
    source: Annotated[str | None, Query(description="only those of this source")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonAnswer:
    """The dead letters in the registry's database, oldest first: of deliveries of this service and of pipelines."""
    context.caller.need(ADMIN)
    found = await _choose(context.service, LetterChoice(source=source, ids=None))
    return JsonAnswer([_to_record(letter) for letter in found[:limit]])


@router.post("/v1/dead-letters/retry", response_model=Redelivered, responses=refusals(400, 409, 422))
async def retry_letters(context: InContext, choice: LetterChoice) -> JsonAnswer:
    """Send dead letters of this service's deliveries again. Delivered ones are removed."""
    context.caller.need(ADMIN)
    service, delivered, failed = context.service, 0, 0
    await service.deliveries.wait_started()
    found = await _choose(service, choice)
    by_source: dict[str, list[Letter]] = {}
    for letter in found:
        by_source.setdefault(letter.source, []).append(letter)
    for source, letters in by_source.items():
        delivery = service.deliveries.by_source(source)
        if delivery is None:
            if choice.source == source:
                raise Problem(409, "unknown_delivery", f"{source!r} is not a delivery of this service")
            continue
        sending = delivery.sending

        def send(letters: list[Letter] = letters, sending: Any = sending) -> tuple[int, int]:
            return redeliver(service.deliveries.letters(), letters, sending)

        n_delivered, n_failed = await in_thread(send)
        delivered, failed = delivered + n_delivered, failed + n_failed
    return JsonAnswer({"delivered": delivered, "failed": failed})


@router.post("/v1/dead-letters/drop", response_model=Dropped, responses=refusals(400, 422))
async def drop_letters(context: InContext, choice: LetterChoice) -> JsonAnswer:
    """Delete dead letters of a source, or with these ids."""
    context.caller.need(ADMIN)
    if choice.source is None and not choice.ids:
        raise Problem(400, "invalid_request", "give the source or the ids of the letters to drop")
    found = await _choose(context.service, choice)
    n = await run_in_threadpool(lambda: context.service.deliveries.letters().remove(found))
    return JsonAnswer({"dropped": n})


async def _choose(service: Service, choice: LetterChoice) -> list[Letter]:
    return await run_in_threadpool(
        lambda: choose(service.deliveries.letters().read(), source=choice.source, ids=choice.ids or ())
    )


def _to_record(letter: Letter) -> dict[str, Any]:
    names = ("id", "kind", "source", "body", "reason", "failed_at", "group", "status", "attempts")
    host = None if letter.url is None else host_of(letter.url)
    return {**{name: getattr(letter, name) for name in names}, "host": host}
