"""Queries: list, add, replace, remove, many at once; their history, and restore."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from vedette.errors import QueryError, UnknownQueryError
from vedette.files.json_text import read_json
from vedette.registry.read.query_info import QueryInfo
from vedette.registry.read.set_info import SetInfo
from vedette.registry.records import query_record
from vedette.registry.tokens import READ, WRITE
from vedette.serve.access import OWNER
from vedette.serve.bulk import read_lines, write_lines
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import BulkReport, Changed, NewQuery, QueryBody, QueryPage, QueryRecord, ToVersion, Written
from vedette.serve.problems import Problem, refusals
from vedette.serve.routes.shared import Context, ExpectVersion, InContext, QueryId, SetName, read_id

router = APIRouter(prefix="/v1/sets/{set}/queries", tags=["queries"])


@router.get("", response_model=QueryPage, responses=refusals(400, 404, 422))
async def list_queries(
    context: InContext,
    name: SetName,
    prefix: Annotated[str | None, Query(description="the first characters of ids")] = None,
    search: Annotated[str | None, Query(description="characters of the text, ignoring case")] = None,
    metadata: Annotated[str | None, Query(description='a JSON object, such as {"owner": "ann"}')] = None,
    state: Annotated[str, Query(description="active, parked, removed or expired")] = "active",
    after: Annotated[str | None, Query(description="`next` of the previous page")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    at: Annotated[int | None, Query(ge=0, lt=2**63, description="as of this version")] = None,
) -> JsonAnswer:
    """A page of queries, in the order of their ids."""
    info = await context.find(name, READ)
    wanted = [_read_metadata(metadata)]
    if context.caller.owner is not None:
        wanted = [{**wanted[0], OWNER: owner} for owner in context.caller.owners()]
    place = None if after is None else read_id(after, info)

    def read() -> list[QueryInfo]:
        chosen: dict[str, Any] = {
            "prefix": prefix,
            "search": search,
            "state": state,
            "after": place,
            "limit": limit + 1,
            "at": at,
        }
        found = [context.service.registry.list(name, metadata=each, **chosen) for each in wanted]
        return found[0] if len(found) == 1 else sorted(itertools.chain(*found), key=lambda query: query.id)

    found = await run_in_threadpool(read)
    page = [query for query in found[:limit] if context.caller.sees(query.metadata)]
    return JsonAnswer(
        {
            "queries": [{**query_record(query, info), **_share_of(context, info, query.id)} for query in page],
            "next": found[limit - 1].id if len(found) > limit else None,
            "version": info.version if at is None else at,
        }
    )


@router.post("", status_code=201, response_model=Written, responses=refusals(400, 404, 409, 422))
async def add_query(
    context: InContext, name: SetName, new: NewQuery, expect_version: ExpectVersion = None
) -> JsonAnswer:
    """Add a query."""
    await context.find(name, WRITE)
    editor = context.editor(name)
    answer = await run_in_threadpool(editor.add, new.id, new.to_arguments(), expect_version)
    await context.service.changed(name)
    return JsonAnswer(answer, 201)


@router.post(
    "/bulk",
    response_model=BulkReport,
    responses=refusals(400, 404, 409, 415, 422),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "One object per line: `op` (add, replace, put or remove), `id`, and the fields of a query.",
            "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
        }
    },
)
async def change_queries(
    context: InContext,
    name: SetName,
    request: Request,
    skip_invalid: Annotated[bool, Query(description="write the valid lines, and report the others")] = False,
    expect_version: ExpectVersion = None,
) -> JsonAnswer:
    """Add, replace and remove many queries in one transaction and one version, with a report per line."""
    await context.find(name, WRITE)
    body = await request.body()
    if request.headers.get("content-type", "").partition(";")[0].strip() not in (
        "application/x-ndjson",
        "application/jsonl",
    ):
        raise Problem(415, "unsupported_media_type", "many queries have the Content-Type application/x-ndjson")
    report = await run_in_threadpool(
        lambda: write_lines(context.editor(name), read_lines(body), expect_version, skip_invalid=skip_invalid)
    )
    await context.service.changed(name)
    return JsonAnswer(report)


@router.get("/{id:path}/history", response_model=list[QueryRecord], responses=refusals(404))
async def show_history(context: InContext, name: SetName, query_id: QueryId) -> JsonAnswer:
    """The revisions of a query, oldest first, with the authors of each change where they are known."""
    info = await context.find(name, READ)
    registry = context.service.registry

    def read() -> list[dict[str, Any]]:
        revisions = [
            each for each in registry.history(name, read_id(query_id, info)) if context.caller.sees(each.metadata)
        ]
        if not revisions:
            raise UnknownQueryError(f"no query {query_id!r} in set {name!r}")
        made = {each.added_version for each in revisions} | {each.removed_version or 0 for each in revisions}
        authors = registry.authors(name, made)
        return [
            {
                **query_record(each, info),
                "added_by": authors.get(each.added_version),
                "removed_by": None if each.removed_version is None else authors.get(each.removed_version),
            }
            for each in revisions
        ]

    return JsonAnswer(await run_in_threadpool(read))


@router.post("/{id:path}/restore", response_model=Changed, responses=refusals(400, 404, 409, 422))
async def restore_query(
    context: InContext, name: SetName, query_id: QueryId, to: ToVersion, expect_version: ExpectVersion = None
) -> JsonAnswer:
    """Give a query the content that it had at a version. This makes a new version."""
    info = await context.find(name, WRITE)
    ids = [read_id(query_id, info)]
    version = await run_in_threadpool(context.editor(name).restore, ids, to.version, expect_version)
    await context.service.changed(name)
    return JsonAnswer({"version": version})


@router.get("/{id:path}", response_model=QueryRecord, responses=refusals(404))
async def show_query(context: InContext, name: SetName, query_id: QueryId) -> JsonAnswer:
    """An active or parked query."""
    info = await context.find(name, READ)
    query = await run_in_threadpool(context.service.registry.get, name, read_id(query_id, info))
    if not context.caller.sees(query.metadata):
        raise UnknownQueryError(f"no query {query_id!r} in set {name!r}")
    return JsonAnswer({**query_record(query, info), **_share_of(context, info, query.id)})


@router.patch("/{id:path}", response_model=Written, responses=refusals(400, 404, 409, 422))
async def replace_query(
    context: InContext, name: SetName, query_id: QueryId, new: QueryBody, expect_version: ExpectVersion = None
) -> JsonAnswer:
    """Change what is given of a query. The rest stays as it is."""
    info = await context.find(name, WRITE)
    editor, own_id = context.editor(name), read_id(query_id, info)
    answer = await run_in_threadpool(editor.replace, own_id, new.to_arguments(), expect_version)
    await context.service.changed(name)
    return JsonAnswer(answer)


@router.delete("/{id:path}", response_model=Changed, responses=refusals(404, 409, 422))
async def remove_query(
    context: InContext, name: SetName, query_id: QueryId, expect_version: ExpectVersion = None
) -> JsonAnswer:
    """Remove a query."""
    info = await context.find(name, WRITE)
    version = await run_in_threadpool(context.editor(name).remove, read_id(query_id, info), expect_version)
    await context.service.changed(name)
    return JsonAnswer({"version": version})


def _share_of(context: Context, info: SetInfo, query_id: Any) -> dict[str, float]:
    """The share of the recent rows that a query matches, if it is broad, as last measured."""
    live = context.service.live.get(info.name)
    share = None if live is None or live.broad is None else live.broad.shares.get(query_id)
    return {} if share is None else {"match_share": share}


def _read_metadata(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        read = read_json(text)
    except (ValueError, ValidationError):
        read = None
    if not isinstance(read, dict):
        raise QueryError('must be a JSON object, such as {"owner": "ann"}', option="metadata")
    return read
