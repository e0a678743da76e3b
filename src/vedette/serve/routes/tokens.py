"""Tokens: create, list, revoke."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from vedette.errors import RegistryError
from vedette.registry.tokens import ADMIN, create_token, list_tokens, revoke_token
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import CreatedToken, NewToken, TokenRecord
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import InContext

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.get("", response_model=list[TokenRecord], responses=refusals())
async def show_tokens(context: InContext) -> JsonAnswer:
    """All tokens, oldest first, without their secrets."""
    context.caller.need(ADMIN)
    found = await run_in_threadpool(list_tokens, context.service.registry.database)
    return JsonAnswer([token.to_record() for token in found])


@router.post("", status_code=201, response_model=CreatedToken, responses=refusals(400, 422))
async def add_token(context: InContext, new: NewToken) -> JsonAnswer:
    """Create a token. The answer is the only place where it is shown. From then on every request needs a token."""
    context.caller.need(ADMIN)
    given = new.model_dump()
    database = context.service.registry.database
    token, text = await run_in_threadpool(lambda: create_token(database, given.pop("name"), given.pop("role"), **given))
    await run_in_threadpool(context.service.tokens.refresh)
    return JsonAnswer({**token.to_record(), "token": text}, 201)


@router.delete("/{id}", response_model=TokenRecord, responses=refusals(404))
async def remove_token(context: InContext, id: str) -> JsonAnswer:
    """Revoke a token."""
    context.caller.need(ADMIN)
    try:
        token = await run_in_threadpool(revoke_token, context.service.registry.database, id)
    except RegistryError as error:
        if error.is_retryable:
            raise
        raise Problem(404, "unknown_token", f"no token {id!r}") from None
    await run_in_threadpool(context.service.tokens.refresh)
    return JsonAnswer(token.to_record())
