"""The application: all routes, the form of errors, and the OpenAPI document."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.responses import Response
from starlette.routing import WebSocketRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from vedette import __version__
from vedette.errors import VedetteError
from vedette.registry.registry import Registry
from vedette.serve.gate import Gate
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.options import ServeOptions
from vedette.serve.page_headers import PageHeaders
from vedette.serve.problems import Problem, problem_of
from vedette.serve.routes import (
    deliveries,
    events,
    health,
    keys,
    monitors,
    objects,
    pipelines,
    queries,
    rows,
    session,
    sets,
    status,
    tokens,
    tools,
    zones,
)
from vedette.serve.routes.console import console_routes
from vedette.serve.service import Service

_log = logging.getLogger(__name__)
_CODES = {404: "unknown_path", 405: "unknown_method"}


class App(FastAPI):
    """The application. Rows take a shorter way, through the gate only."""

    answer_rows: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and rows.Rows.is_asked(scope):
            await self.answer_rows(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def make_app(registry: Registry, options: ServeOptions) -> FastAPI:
    """The application over a registry. Its lifespan opens and closes the service."""
    service = Service(registry, options)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        yield
        await service.stop()

    app = App(
        title="Vedette", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.service = service
    app.router.routes.extend(rows.ROUTES)
    for module in (
        health, session, status, sets, queries, zones, monitors, keys, objects, events, deliveries, tools, tokens,
        pipelines,
    ):  # fmt: skip
        app.include_router(module.router)
    app.router.routes.append(WebSocketRoute("/v1/sets/{set}/events/ws", events.follow_by_socket))
    app.router.routes.append(WebSocketRoute("/v1/sets/{set}/keys/ws", keys.follow_keys))
    app.router.routes.extend(console_routes())
    app.add_exception_handler(VedetteError, _answer_error)
    app.add_exception_handler(HTTPException, _answer_problem)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    answer_failure = partial(_answer_failure, PageHeaders(options.tiles))
    app.add_exception_handler(Exception, answer_failure)
    app.add_middleware(Gate, service=service)
    app.answer_rows = ServerErrorMiddleware(Gate(rows.Rows(service), service), answer_failure)
    app.openapi = lambda: _describe(app)  # type: ignore[method-assign]
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, VedetteError)
    return problem_of(error).to_response()


async def _answer_problem(request: Request, error: Exception) -> Response:
    if isinstance(error, Problem):
        return error.to_response()
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "invalid_request")
    return Problem(error.status_code, code, str(error.detail), headers=dict(error.headers or {})).to_response()


async def _answer_invalid(request: Request, error: Exception) -> Response:
    """The first field that is missing or has another type."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        said = first.get("ctx", {}).get("error", "")
        return Problem(422, "invalid_body", f"the body is not valid JSON: {said}").to_response()
    place = ".".join(str(each) for each in first["loc"][1:]) or str(first["loc"][0])
    return Problem(422, "invalid_body", f"{place}: {first['msg']}", field=place).to_response()


async def _answer_failure(headers: PageHeaders, request: Request, error: Exception) -> Response:
    """The answer to a request that has failed. It does not pass the gate, so it has its headers from here."""
    _log.error("a request failed", exc_info=error)
    content = {"error": {"code": "internal", "message": "the service has failed; its log says why"}}
    return JsonAnswer(content, 500, {name.decode(): value.decode() for name, value in headers.of_sessions})


def _describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the routes that FastAPI does not know."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description='Standing queries over rows. Errors have one form: {"error": {"code", "message", ...}}.',
            routes=app.routes,
        )
        document["paths"].update(rows.describe())
        document.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}, {}]
        app.openapi_schema = document
    return app.openapi_schema
