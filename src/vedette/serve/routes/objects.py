"""The moving objects of a monitor, and the pairs that they will be in."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from vedette.registry.kinds import MOVING_JOIN
from vedette.registry.tokens import READ
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import ObjectPage
from vedette.serve.moving_objects import list_objects
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import InContext, SetName

router = APIRouter(prefix="/v1/sets/{set}/objects", tags=["rows"])


@router.get("", response_model=ObjectPage, responses=refusals(404, 409, 422))
async def show_objects(
    context: InContext,
    name: SetName,
    search: Annotated[str | None, Query(max_length=1000, description="characters of the id, ignoring case")] = None,
    after: Annotated[int, Query(ge=-1, lt=2**31, description="`next` of the previous page")] = -1,
    limit: Annotated[int, Query(ge=1, le=1000, description="objects of a page")] = 100,
) -> JsonAnswer:
    """The moving objects of a moving join with their last motions, in the order in which they appeared.

    With them the pairs of these objects and zones that intersect now or later, if nothing changes, the earliest first:
    at most 5,000. They are known up to the deadlines of the objects.
    """
    context.caller.need_all_owners(READ, name)
    info = await context.find(name, READ)
    if info.kind != MOVING_JOIN:
        raise Problem(409, "other_kind", f"set {name!r} is of kind {info.kind}; objects need kind {MOVING_JOIN}")
    live = await context.service.open(name)
    return JsonAnswer(await live.call(lambda: list_objects(live.need_monitor().monitor, search, after, limit)))
