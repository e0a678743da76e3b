"""The state of the service and of each set, as the console's first page shows it; and the functions of the language."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from vedette import __version__
from vedette.language.function_table import SECTIONS
from vedette.registry.read.set_info import SetInfo
from vedette.registry.tokens import READ
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import FunctionRecord, Status
from vedette.serve.monitor_file import MonitorFile
from vedette.serve.problems import refusals
from vedette.serve.routes.shared import InContext
from vedette.serve.service import Service

router = APIRouter(prefix="/v1", tags=["operations"])


@router.get("/status", response_model=Status, responses=refusals())
async def show_status(context: InContext) -> JsonAnswer:
    """Counters of the service since its start, by set. Two answers give rates. Owners see no counts of others' rows."""
    context.caller.need(READ)
    service, allowed = context.service, context.caller.sets
    infos = await run_in_threadpool(service.registry.sets)
    seen = [info for info in infos if allowed is None or info.name in allowed]
    return JsonAnswer(
        {
            "version": __version__,
            "ready": service.is_ready and not service.is_stopping,
            "registry_error": service.last_poll_error,
            "streams": service.n_streams,
            "tiles": service.options.tiles or None,
            "sets": [_state_of(service, info, counts=context.caller.owner is None) for info in seen],
        }
    )


def _state_of(service: Service, info: SetInfo, *, counts: bool) -> dict[str, Any]:
    live = service.live.get(info.name)
    monitor = None if live is None else live.monitor
    known = {
        "name": info.name,
        "kind": info.kind,
        "queries": info.n_active,
        "parked": info.n_parked,
        "version": info.version,
        "monitored": monitor is not None or MonitorFile(service.options.state / info.uid).exists,
        "sequence": None if live is None else live.feed.next - 1,
        "monitor_error": None if live is None or live.monitor_error is None else str(live.monitor_error),
    }
    if not counts:
        return known
    if live is not None:
        live.measure_soon()
    return known | {
        "broad": None if live is None or live.broad is None else live.broad.n_queries,
        "waiting": 0 if live is None else live.n_waiting,
        "keys": None if monitor is None else monitor.operator.n_kept,
        "late": None if monitor is None else monitor.operator.n_late,
        **service.metrics.counts_of(info.name),
    }


@router.get("/functions", response_model=list[FunctionRecord], responses=refusals())
async def list_functions(context: InContext) -> JsonAnswer:
    """The functions that the text of a query may call."""
    context.caller.need(READ)
    return JsonAnswer(
        [
            {"name": each.name, "aliases": [*each.aliases], "call": each.call, "section": section, "gives": each.gives}
            for section, functions in SECTIONS.items()
            for each in functions
        ]
    )
