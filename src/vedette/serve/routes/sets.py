"""Sets: list, create, alter, drop; differences of two versions; restore."""

from __future__ import annotations

from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool

from vedette.data.schema import Schema
from vedette.errors import RowError, SchemaError, shown
from vedette.registry.read.query_info import QueryInfo
from vedette.registry.records import query_record, set_record
from vedette.registry.tokens import ADMIN, READ, WRITE
from vedette.serve.bodies import RowsOf
from vedette.serve.editing import at_version
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import AlteredSet, Changed, Diff, NewSet, SetRecord, ToVersion
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import Context, ExpectVersion, InContext, SetName

router = APIRouter(prefix="/v1/sets", tags=["sets"])
_RESERVED = {"name", "kind", "schema", "time_zone", "windows", "ids", "sample", "max_match_share", "dimensions", "self"}


@router.get("", response_model=list[SetRecord], responses=refusals())
async def list_sets(context: InContext) -> JsonAnswer:
    """All sets that the caller may see, by name."""
    context.caller.need(READ)
    allowed = context.caller.sets
    infos = await run_in_threadpool(context.service.registry.sets)
    return JsonAnswer([set_record(info) for info in infos if allowed is None or info.name in allowed])


@router.post("", status_code=201, response_model=SetRecord, responses=refusals(400, 409, 422))
async def create_set(context: InContext, new: NewSet) -> JsonAnswer:
    """Create an empty set."""
    context.caller.need(ADMIN)
    if "/" in new.name or not new.name.isprintable() or new.name in (".", ".."):
        raise SchemaError(f"a set's name is a part of addresses: no '/' or control character; got {shown(new.name)}")
    given: dict[str, Any] = {name: value for name, value in new if value is not None and name != "schema_"}
    if isinstance(new.schema_, dict):
        for taken in _RESERVED & new.schema_.keys():
            raise SchemaError(f"{taken!r} cannot be the name of a stream; use another name")
        given |= new.schema_
    elif new.schema_ is not None:
        given["schema"] = new.schema_
    if new.sample is not None:
        given["sample"] = _read_sample(new.sample, new.schema_, new.time_zone)
    info = await run_in_threadpool(lambda: context.service.registry.create(given.pop("name"), **given))
    return JsonAnswer(set_record(info), 201)


@router.get("/{set}", response_model=SetRecord, responses=refusals(404))
async def show_set(context: InContext, name: SetName) -> JsonAnswer:
    """One set."""
    return JsonAnswer(set_record(await context.find(name, READ)))


@router.patch("/{set}", response_model=Changed, responses=refusals(400, 404, 409, 422))
async def alter_set(context: InContext, name: SetName, new: AlteredSet) -> JsonAnswer:
    """Change the schema or the time zone, or the sample and the share of it that a new query may match.

    With another schema, a monitor of the set must be created again afterwards.
    """
    info = await context.find(name, ADMIN)
    if all(each is None for each in (new.schema_, new.time_zone, new.sample, new.max_match_share)):
        raise SchemaError("give a new schema or time zone, or a sample and max_match_share")
    registry, given = context.service.registry, {"sample": new.sample, "max_match_share": new.max_match_share}
    if new.sample is not None:
        given["sample"] = _read_sample(new.sample, info.schema.get(""), info.time_zone)
    version = await run_in_threadpool(
        lambda: registry.alter(
            name, new.schema_, time_zone=new.time_zone, force=new.force, author=context.caller.author, **given
        )
    )
    await context.service.changed(name)
    return JsonAnswer({"version": version})


@router.delete("/{set}", status_code=204, responses=refusals(404))
async def drop_set(context: InContext, name: SetName) -> None:
    """Drop a set with its queries, its history, and the state of its monitor."""
    await context.find(name, ADMIN)
    await run_in_threadpool(context.service.registry.drop, name)
    await context.service.dropped(name)


@router.get("/{set}/diff", response_model=Diff, responses=refusals(400, 404, 422))
async def show_diff(
    context: InContext,
    name: SetName,
    before: Annotated[int, Query(ge=0, lt=2**63, description="a version")],
    after: Annotated[
        int | None, Query(ge=0, lt=2**63, description="a later version; by default the current one")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> JsonAnswer:
    """The queries that differ between two versions of a set, as they were and as they are."""
    info = await context.find(name, READ)
    last = info.version if after is None else after

    def read() -> dict[str, Any]:
        def sides_of(query_id: Any) -> list[QueryInfo | None]:
            history = context.service.registry.history(name, query_id)
            sides = [at_version(history, version) for version in (before, last)]
            return [None if each is None or not context.caller.sees(each.metadata) else each for each in sides]

        ids = changed_ids(context, name, before, last)
        if context.caller.owner is not None:
            ids = [query_id for query_id in ids if sides_of(query_id) != [None, None]]
        lines = []
        for query_id in ids[:limit]:
            old, new = sides_of(query_id)
            if old is None and new is None:
                continue
            change = "added" if old is None else "removed" if new is None else "changed"
            records = [None if each is None else query_record(each, info) for each in (old, new)]
            lines.append({"id": query_id, "change": change, "before": records[0], "after": records[1]})
        return {"before": before, "after": last, "queries": lines, "more": max(0, len(ids) - limit)}

    return JsonAnswer(await run_in_threadpool(read))


@router.post("/{set}/restore", response_model=Changed, responses=refusals(400, 404, 409, 422))
async def restore_set(
    context: InContext, name: SetName, to: ToVersion, expect_version: ExpectVersion = None
) -> JsonAnswer:
    """Give all queries of a set the content that they had at a version. This makes a new version."""
    await context.find(name, WRITE)
    if context.caller.owner is not None:
        raise Problem(403, "forbidden", "a token that is confined to an owner restores queries one by one")

    def restore() -> int:
        info = context.service.registry.set(name)
        ids = changed_ids(context, name, to.version, info.version)
        return context.editor(name).restore(ids, to.version, expect_version)

    version = await run_in_threadpool(restore)
    await context.service.changed(name)
    return JsonAnswer({"version": version})


def _read_sample(rows: list[dict[str, Any]], schema: str | dict[str, str] | None, time_zone: str) -> pa.Table:
    """Rows of JSON in the types of the schema. A field that no row has is not in the sample, as in a file of rows."""
    if not isinstance(schema, str):
        raise SchemaError("a sample is of rows of one schema: sets of match and border have one")
    table = RowsOf(Schema.parse(schema), time_zone, len(rows)).to_table(rows)
    given = {name.lower() for row in rows for name in row}
    known = [name for name in table.column_names if name.lower() in given]
    if not known:
        raise RowError(f"the sample has no field of the set; its fields are: {', '.join(table.column_names)}")
    return table.select(known)


def changed_ids(context: Context, name: str, before: int, after: int) -> list[Any]:
    """The ids of queries that were added or removed between two versions."""
    if before > after:
        raise Problem(400, "invalid_version", f"version {before} is after version {after}; give the earlier one first")
    changes = context.service.registry.changes(name, before, after)
    return list(dict.fromkeys([*changes.removed_ids, *changes.added_ids]))
