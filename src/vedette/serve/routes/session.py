"""The session of the console: who is signed in. A token is sent once, as a header, and the browser keeps a cookie."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from vedette.serve.access import Caller
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import SessionRecord
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import InContext
from vedette.serve.sessions import LIFE_SECONDS

router = APIRouter(prefix="/v1/session", tags=["tokens"])


@router.get("", response_model=SessionRecord, responses=refusals())
async def show_session(context: InContext) -> JsonAnswer:
    """Who the caller is, and what they may do."""
    return JsonAnswer(_to_record(context.caller))


@router.post("", status_code=201, response_model=SessionRecord, responses=refusals(409))
async def sign_in(context: InContext, request: Request) -> Response:
    """Begin a session of the token in the header Authorization. The answer sets a cookie that stands for it."""
    caller, sessions = context.caller, context.service.tokens.sessions
    if not caller.token_id:
        raise Problem(409, "no_tokens", "the service has no tokens, so nobody needs to sign in")
    if caller.session:
        raise Problem(409, "signed_in", "a session does not extend itself; send the token in the header Authorization")
    answer = JsonAnswer(_to_record(caller), 201)
    answer.set_cookie(
        sessions.cookie,
        sessions.create(caller.token_id),
        max_age=LIFE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.delete("", status_code=204, responses=refusals())
async def sign_out(context: InContext) -> Response:
    """End the session. Its streams of events end, too."""
    sessions = context.service.tokens.sessions
    sessions.end(context.caller.session)
    answer = Response(status_code=204)
    answer.delete_cookie(sessions.cookie, httponly=True, samesite="strict")
    return answer


def _to_record(caller: Caller) -> dict[str, object]:
    return {
        "token": caller.token_id or None,
        "name": caller.author,
        "role": caller.role,
        "sets": None if caller.sets is None else sorted(caller.sets),
        "owner": caller.owner,
    }
