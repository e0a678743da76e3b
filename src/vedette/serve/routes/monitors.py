"""The monitor of a set: its options, and the end of its state."""

from __future__ import annotations

from fastapi import APIRouter

from vedette.registry.tokens import ADMIN, READ
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import MonitorBody
from vedette.serve.problems import refusals
from vedette.serve.routes.shared import InContext, SetName

router = APIRouter(prefix="/v1/sets/{set}/monitor", tags=["rows"])


@router.get("", response_model=MonitorBody, responses=refusals(404))
async def show_monitor(context: InContext, name: SetName) -> JsonAnswer:
    """The options of the monitor."""
    await context.find(name, READ)
    live = await context.service.open(name)
    return JsonAnswer(await live.call(live.monitor_options))


@router.put("", status_code=201, response_model=MonitorBody, responses=refusals(400, 404, 409, 422))
async def create_monitor(context: InContext, name: SetName, body: MonitorBody) -> JsonAnswer:
    """Begin border monitoring of the rows that are sent to this set."""
    await context.find(name, ADMIN)
    live = await context.service.open(name)
    options = body.model_dump()
    await live.call(lambda: live.create_monitor(options))
    return JsonAnswer(options, 201)


@router.delete("", status_code=204, responses=refusals(404))
async def delete_monitor(context: InContext, name: SetName) -> None:
    """End monitoring, and delete its state."""
    await context.find(name, ADMIN)
    live = await context.service.open(name)
    await live.call(live.delete_monitor)
