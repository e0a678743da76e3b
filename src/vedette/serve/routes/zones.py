"""The zones of a set as GeoJSON, for maps."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from vedette.registry.tokens import READ
from vedette.serve.access import OWNER
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import ZoneCollection
from vedette.serve.problems import refusals
from vedette.serve.routes.keys import read_bounds
from vedette.serve.routes.shared import InContext, SetName

router = APIRouter(prefix="/v1/sets/{set}/zones", tags=["queries"])


@router.get("", response_model=ZoneCollection, responses=refusals(400, 404, 422))
async def show_zones(
    context: InContext,
    name: SetName,
    bbox: Annotated[
        str, Query(max_length=200, description="west,south,east,north in degrees; by default the world")
    ] = "-180,-90,180,90",
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> JsonAnswer:
    """The polygons, and the circles in metres, that the queries of a set have, the largest first.

    A circle is a point with the property `radius`. `start` and `end` are the place of the geometry in the query's text.
    """
    info = await context.find(name, READ)
    bounds, index = read_bounds(bbox), context.service.zones.of(info)
    zones, n_more = await run_in_threadpool(
        lambda: index.find(info, bounds, limit, lambda zone: context.caller.sees({OWNER: zone.owner}))
    )
    features = [zone.to_feature() for zone in zones]
    return JsonAnswer({"type": "FeatureCollection", "features": features, "more": n_more, "version": info.version})
