"""Health, readiness and metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from vedette.registry.tokens import READ
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import InContext
from vedette.serve.service import service_of

router = APIRouter(tags=["operations"])
_STATE: dict[str, Any] = {"description": "The state", "content": {"application/json": {"schema": {"type": "object"}}}}


@router.get("/healthz", responses={200: _STATE, **refusals()})
async def is_healthy() -> JsonAnswer:
    """Whether the process answers."""
    return JsonAnswer({"status": "ok"})


@router.get("/readyz", responses={200: _STATE, **refusals(503)})
async def is_ready(request: Request) -> JsonAnswer:
    """Whether requests can be answered: states are loaded, and the registry's database answers."""
    service = service_of(request)
    if service.is_ready and not service.is_stopping and service.last_poll_error is None:
        return JsonAnswer({"status": "ready"})
    reason = (
        "stopping" if service.is_stopping else "starting" if not service.is_ready else "the registry is unreachable"
    )
    return JsonAnswer({"error": {"code": "not_ready", "message": reason}}, 503)


@router.get(
    "/metrics",
    responses={
        200: {"description": "Metrics", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **refusals(),
    },
    response_class=Response,
)
async def show_metrics(context: InContext) -> Response:
    """Metrics for Prometheus."""
    context.caller.need(READ)
    if context.caller.sets is not None or context.caller.owner is not None:
        raise Problem(403, "forbidden", "metrics are of all sets; the token is confined")
    return Response(context.service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
