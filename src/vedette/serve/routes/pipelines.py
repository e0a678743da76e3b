"""The pipelines that share the registry: `vedette run` processes, as they describe themselves."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.concurrency import run_in_threadpool

from vedette.registry.pipelines import PipelineRun, list_pipelines, read_events
from vedette.registry.tokens import READ
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import PipelineEvent, PipelineRecord
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import Context, InContext

router = APIRouter(prefix="/v1/pipelines", tags=["pipelines"])
_Name = Annotated[str, Path(description="the name of the pipeline")]
_Set = Annotated[str | None, Query(alias="set", description="only pipelines of this set")]


@router.get("", response_model=list[PipelineRecord], responses=refusals(422))
async def show_pipelines(context: InContext, of_set: _Set = None) -> JsonAnswer:
    """All pipelines that the caller may see, by name. One that was killed is `lost` after 30 seconds."""
    return JsonAnswer([run.to_record() for run in await _read(context, of_set)])


@router.get("/{name}", response_model=PipelineRecord, responses=refusals(404, 422))
async def show_pipeline(context: InContext, name: _Name, of_set: _Set = None) -> JsonAnswer:
    """One pipeline. If several processes run one of this name, the one that started last."""
    return JsonAnswer((await _find(context, name, of_set)).to_record())


@router.get("/{name}/events", response_model=list[PipelineEvent], responses=refusals(404, 422))
async def show_events(
    context: InContext,
    name: _Name,
    of_set: _Set = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonAnswer:
    """The last answers, newest first, if the pipeline's file keeps them with `events` under `[status]`."""
    run = await _find(context, name, of_set)
    database = context.service.registry.database
    return JsonAnswer(await run_in_threadpool(read_events, database, run.name, run.set_name, limit))


async def _find(context: Context, name: str, of_set: str | None) -> PipelineRun:
    for run in await _read(context, of_set):
        if run.name == name:
            return run
    raise Problem(404, "unknown_pipeline", f"no pipeline {name!r}, or the token is not for its set")


async def _read(context: Context, of_set: str | None) -> list[PipelineRun]:
    caller = context.caller
    caller.need(READ)
    if caller.owner is not None:
        raise Problem(403, "forbidden", "pipelines are for the queries of all owners; the token is confined to one")
    runs = await run_in_threadpool(list_pipelines, context.service.registry.database)
    return [
        run for run in runs if (caller.sets is None or run.set_name in caller.sets) and of_set in (None, run.set_name)
    ]
