"""Errors as the service answers them: a status and one JSON shape, {"error": {"code", "message", ...}}."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import Scope, Send

from vedette.errors import (
    AnswerError,
    ConflictError,
    ExistingQueryError,
    ExistingSetError,
    FileError,
    MissingPackageError,
    PipelineError,
    QueryError,
    RegistryError,
    RowError,
    SchemaError,
    SnapshotError,
    UnknownQueryError,
    UnknownSetError,
    VedetteError,
)
from vedette.registry.store.failures import DroppedError
from vedette.serve.json_answers import JsonAnswer, dump

# The first class that an error is an instance of decides: status and code.
_KINDS: list[tuple[type[VedetteError], int, str]] = [
    (UnknownQueryError, 404, "unknown_query"),
    (ExistingQueryError, 409, "existing_query"),
    (QueryError, 400, "invalid_query"),
    (SchemaError, 400, "invalid_schema"),
    (RowError, 400, "invalid_rows"),
    (AnswerError, 413, "answer_too_large"),
    (SnapshotError, 409, "damaged_state"),
    (FileError, 400, "invalid_file"),
    (MissingPackageError, 501, "missing_package"),
    (PipelineError, 400, "invalid_request"),
    (ConflictError, 409, "conflict"),
    (UnknownSetError, 404, "unknown_set"),
    (DroppedError, 404, "unknown_set"),
    (ExistingSetError, 409, "existing_set"),
    (RegistryError, 400, "registry"),
]
STATUSES = {
    400: "The request is invalid: a query, a row, a schema or a parameter",
    401: "No token, or one that is unknown, revoked or expired",
    403: "The token, or the origin of the request, does not allow this",
    404: "No such set, query, monitor or token",
    405: "The path does not have this method",
    409: "Another writer was first, the name is taken, or the state does not allow this",
    413: "The body or the answer is too large",
    415: "The content type is not supported",
    422: "The request does not have the fields or types that it must have",
    429: "A limit on rates, queries or connections is reached",
    503: "The registry's database or the disk of the state does not answer; try again",
}


class Problem(HTTPException):
    """An error with its status and the content of its answer."""

    def __init__(self, status: int, code: str, message: str, *, headers: dict[str, str] | None = None, **more: Any):
        super().__init__(status, message, headers)
        self.code = code
        self.more = {name: value for name, value in more.items() if value is not None}

    @property
    def content(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.detail, **self.more}}

    def to_response(self) -> JsonAnswer:
        return JsonAnswer(self.content, self.status_code, self.headers)


async def refuse_socket(problem: Problem, scope: Scope, send: Send) -> None:
    """Refuse a WebSocket in its handshake: with the status and the JSON of the problem, if the server can do that."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 4000 + problem.status_code, "reason": problem.detail[:120]})
        return
    body = dump(problem.content)
    given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(problem.headers or {})}
    headers = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    start = {"type": "websocket.http.response.start", "status": problem.status_code, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": body})


def problem_of(error: VedetteError) -> Problem:
    """An error of the library as a problem, with its own sentence."""
    status, code = next((status, code) for kind, status, code in _KINDS if isinstance(error, kind))
    if isinstance(error, RegistryError) and error.is_retryable:
        status, code = 503, "unavailable"
    return Problem(status, code, error.reason, **about(error))


def about(error: VedetteError) -> dict[str, Any]:
    """What an error is about: the place in a text, and the query, field or option."""
    names = ("position", "end", "query", "field", "option")
    found = {name: getattr(error, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "description": "a word for programs, such as invalid_query"},
                "message": {"type": "string", "description": "a sentence for people"},
                "position": {"type": "integer", "description": "of the mistake in the query's text"},
                "end": {"type": "integer", "description": "where the mistake ends"},
                "query": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "field": {"type": "string"},
                "option": {"type": "string"},
                "line": {"type": "integer", "description": "of the body, from 1"},
            },
        }
    },
}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route for the OpenAPI document: these, and those that every route has."""
    content = {"application/json": {"schema": _SCHEMA}}
    every = sorted({*statuses, 401, 403, 413, 429, 503})
    return {status: {"description": STATUSES[status], "content": content} for status in every}
