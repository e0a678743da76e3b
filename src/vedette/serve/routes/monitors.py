"""The monitor of a set: its options, time that passes, and the end of its state."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from vedette.registry.tokens import ADMIN, READ, WRITE
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import Passed, TimePassed
from vedette.serve.operators.by_kind import OPERATORS, operator_of
from vedette.serve.problems import refusals
from vedette.serve.routes.shared import InContext, SetName

router = APIRouter(prefix="/v1/sets/{set}", tags=["rows"])
_OPTIONS = {
    "description": "The options of the monitor; which ones there are depends on the kind of the set",
    "anyOf": [operator.options_model.model_json_schema() for operator in OPERATORS.values()],
}
_ANSWER: dict[str, Any] = {"description": "The options", "content": {"application/json": {"schema": _OPTIONS}}}


@router.get("/monitor", responses={200: _ANSWER, **refusals(404)})
async def show_monitor(context: InContext, name: SetName) -> JsonAnswer:
    """The options of the monitor."""
    await context.find(name, READ)
    live = await context.service.open(name)
    return JsonAnswer(await live.call(live.monitor_options))


@router.put(
    "/monitor",
    status_code=201,
    responses={201: _ANSWER, **refusals(400, 404, 409, 422)},
    openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _OPTIONS}}}},
)
async def create_monitor(context: InContext, name: SetName, body: Annotated[dict[str, Any], Body()]) -> JsonAnswer:
    """Begin to monitor the rows that are sent to this set: border monitoring, or a join, as its kind says."""
    info = await context.find(name, ADMIN)
    try:
        options = operator_of(info.kind, name).options_model(**body).model_dump()
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    live = await context.service.open(name)
    await live.call(lambda: live.create_monitor(options))
    return JsonAnswer(options, 201)


@router.delete("/monitor", status_code=204, responses=refusals(404))
async def delete_monitor(context: InContext, name: SetName) -> None:
    """End monitoring, and delete its state."""
    await context.find(name, ADMIN)
    live = await context.service.open(name)
    await live.call(live.delete_monitor)


@router.post("/advance", response_model=Passed, responses=refusals(400, 404, 409, 422))
async def advance(context: InContext, name: SetName, body: TimePassed) -> JsonAnswer:
    """Declare that later rows are not before a time. Answers with the events that this causes.

    Keys expire, enters are reported whose dwell time is over, bounds with now() move, and rows leave their windows.
    """
    context.caller.need_all_owners(WRITE, name)
    await context.find(name, WRITE)
    context.service.check_rate(context.caller, 1)
    live = await context.service.open(name)
    return JsonAnswer((await live.accept_time(body.time)).to_record())
