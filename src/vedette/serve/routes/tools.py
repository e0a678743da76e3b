"""Questions about a set: is a text valid, which index answers, why does a row match, what would queries have done."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from vedette.backtesting.backtest import backtest
from vedette.data.durations import number_or_duration
from vedette.errors import QueryError, RowError, UnknownQueryError
from vedette.files.one_row import convert_row
from vedette.files.rows import RowsFile
from vedette.language.check import check_text
from vedette.queries.query_set import QuerySet
from vedette.registry.kinds import BORDER, find_kind
from vedette.registry.read.set_info import SetInfo
from vedette.registry.tokens import READ
from vedette.serve.bodies import RowsOf, form_of
from vedette.serve.json_answers import JsonAnswer
from vedette.serve.models import CheckBody, Checked, Explanation, WhyBody
from vedette.serve.problems import Problem, about, refusals
from vedette.serve.routes.shared import Context, InContext, SetName

router = APIRouter(prefix="/v1/sets/{set}", tags=["questions"])
_CSV = "text/csv"


@router.post("/check", response_model=Checked, responses=refusals(400, 404, 409, 422))
async def check(context: InContext, name: SetName, body: CheckBody) -> JsonAnswer:
    """Check the text of a query. If it is invalid, the answer has the position of the mistake. Nothing changes."""
    info = await context.find(name, READ)
    schema = info.read_schema()
    if schema is None:
        raise Problem(409, "other_kind", f"set {name!r} is of kind {info.kind}, whose queries have no conditions")

    def run() -> dict[str, Any]:
        try:
            context.editor(name).check_text({"text": body.where}, info)
            if "" not in info.schema:
                return {"valid": True, "warnings": check_text(body.where, schema, info.time_zone)}
            queries = QuerySet(info.schema[""], time_zone=info.time_zone)
            sample = None if body.rows is None else _rows_of(context, info).to_table(body.rows)
            return {"valid": True, "warnings": queries.check(body.where, sample=sample)}
        except QueryError as error:
            return {"valid": False, "warnings": [], "error": {"message": error.reason, **about(error)}}

    return JsonAnswer(await run_in_threadpool(run))


@router.get("/explain", response_model=Explanation, responses=refusals(404, 409))
async def explain(context: InContext, name: SetName) -> JsonAnswer:
    """Which index answers which queries, and why."""
    await context.find(name, READ)
    if context.caller.owner is not None:
        raise Problem(403, "forbidden", "the plan of a set is of all its queries; the token is confined to an owner")
    live = await context.service.open(name)
    version, text, broad = await live.call(lambda: (live.queries.version, live.queries.explain(), live.measure()))
    shares = {} if broad is None else broad.shares
    listed = [{"id": query_id, "match_share": share} for query_id, share in shares.items()]
    return JsonAnswer({"version": version, "explanation": text, "broad": listed})


@router.post("/why", responses={200: {"description": "Each clause with its truth"}, **refusals(400, 404, 409, 422)})
async def why(context: InContext, name: SetName, body: WhyBody) -> JsonAnswer:
    """Why a row matches a query, or does not, clause by clause; or why a key of the monitor is inside a query."""
    info = await context.find(name, READ)
    query = await run_in_threadpool(context.service.registry.get, name, body.query)
    if not context.caller.sees(query.metadata):
        raise UnknownQueryError(f"no query {body.query!r} in set {name!r}")
    if query.text is None:
        raise Problem(409, "other_kind", f"set {name!r} is of kind {info.kind}, whose queries have no conditions")
    if body.key is not None:
        live = await context.service.open(name)

        def explain_key() -> dict[str, Any]:
            if info.kind != BORDER:
                raise Problem(409, "other_kind", f"set {name!r} is of kind {info.kind}; keys need kind border")
            monitor = live.need_monitor().monitor
            row = None if body.row is None else convert_row(body.row, live.queries.schema)
            if context.caller.owner is not None:
                _check_is_inside(monitor, body.query, body.key)
            return dict(monitor.why(body.query, body.key, row).to_dict())

        return JsonAnswer(await live.call(explain_key))
    if body.row is None:
        raise QueryError("give a row, or a key of the monitor")

    def run() -> dict[str, Any]:
        kind = find_kind(info.kind)
        queries = kind.make(kind.load_class(), info)
        queries.add(query.id, query.text, **(query.window or {}))
        if kind.schemas != "streams":
            return dict(queries.why(query.id, convert_row(body.row, queries.schema), now=body.now).to_dict())
        row = body.row or {}
        if set(row) != set(queries.streams):
            raise QueryError(f"a join is explained for a row of each stream: {', '.join(queries.streams)}")
        rows = {stream: convert_row(each, queries.schema_of(stream)) for stream, each in row.items()}
        return dict(queries.why(query.id, **rows).to_dict())

    return JsonAnswer(await run_in_threadpool(run))


def _check_is_inside(monitor: Any, query: Any, key: Any) -> None:
    """Raise 403 unless a key is inside a query. Then its owner has an event of the key, and may know its row."""
    try:
        is_inside = monitor.why(query, key).holds
    except RowError:  # no row of the key
        is_inside = False
    if not is_inside:
        words = "rows are for the queries of all owners; a token that is confined to one sees keys inside its queries"
        raise Problem(403, "forbidden", words)


@router.post(
    "/backtest",
    responses={200: {"description": "Totals, days and queries"}, **refusals(400, 404, 409, 415, 422)},
    openapi_extra={
        "requestBody": {
            "required": False,
            "description": "The history, in time order; none with `recent`.",
            "content": {
                media_type: {"schema": {"type": "string", "format": "binary"}}
                for media_type in (
                    "application/x-ndjson", "application/json", _CSV, "application/vnd.apache.arrow.stream"
                )
            },
        }
    },
)  # fmt: skip
async def run_backtest(
    context: InContext,
    name: SetName,
    request: Request,
    time: Annotated[str, Query(description="the column with the time: a timestamp")],
    key: Annotated[str | None, Query(description="the column with the key of events")] = None,
    where: Annotated[str | None, Query(description="a query to test; by default those of the set")] = None,
    against: Annotated[str | None, Query(description="another text that `where` is compared with")] = None,
    recent: Annotated[
        bool, Query(description="over the last rows that the service has accepted since its start: 16 MiB of bodies")
    ] = False,
    cooldown: str | None = None,
    dwell: str | None = None,
    expire_after: str | None = None,
) -> JsonAnswer:
    """What a query, or those of the set, would have done over the rows of the body, or over recent rows."""
    info = await context.find(name, READ)
    if "" not in info.schema:
        raise Problem(409, "other_kind", f"set {name!r} is of kind {info.kind}; a backtest needs match or border")
    if where is None and context.caller.owner is not None:
        raise Problem(403, "forbidden", "the token is confined to an owner; give a text in `where`")
    if against is not None and where is None:
        raise QueryError("needs `where`, the text that it is compared with", option="against")
    read = await (_read_recent(context, info) if recent else _read_body(context, info, request))

    def run() -> dict[str, Any]:
        texts = [text for text in (where, against) if text is not None]
        for text in texts:
            context.editor(name).check_text({"text": text}, info)
        sets = [_query_set(info, text) for text in texts]
        if not sets:
            registry = context.service.registry
            sets = [registry.follow(name, version=info.version).open(info.version)]
        given = {"cooldown": cooldown, "dwell": dwell, "expire_after": expire_after}
        options = {option: number_or_duration(value) for option, value in given.items() if value is not None}
        against_set = sets[1] if len(sets) > 1 else None
        with tempfile.TemporaryDirectory(prefix="vedette-backtest-") as folder:
            rows = read(Path(folder), sets[0])
            return backtest(sets[0], rows, time=time, key=key, against=against_set, **options).to_dict()

    return JsonAnswer(await run_in_threadpool(run))


async def _read_body(context: Context, info: SetInfo, request: Request) -> Callable[[Path, QuerySet], Any]:
    """How the rows of the body are read, once there is a folder for a file, and a set that says its fields."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = None if content_type == _CSV else form_of(content_type)
    body, rows_of = await request.body(), _rows_of(context, info)
    if form is None:
        return lambda folder, queries: _read_csv(folder, body, queries)
    return lambda folder, queries: rows_of.to_table(rows_of.read(form, body))


async def _read_recent(context: Context, info: SetInfo) -> Callable[[Path, QuerySet], Any]:
    """How the last rows are read that the monitor has accepted."""
    context.caller.need_all_owners(READ, info.name)
    if info.kind != BORDER:
        raise Problem(409, "other_kind", f"set {info.name!r} is of kind {info.kind}; recent rows need kind border")
    live, rows_of = await context.service.open(info.name), _rows_of(context, info)
    await live.call(live.need_monitor)
    return lambda folder, queries: live.recent.tables(rows_of)


def _rows_of(context: Context, info: SetInfo) -> RowsOf:
    schema = info.read_schema()
    assert schema is not None
    return RowsOf(schema, info.time_zone, context.service.options.max_rows)


def _query_set(info: SetInfo, text: str) -> QuerySet:
    queries = QuerySet(info.schema[""], time_zone=info.time_zone)
    queries.add("where", text)
    return queries


def _read_csv(folder: Path, body: bytes, queries: QuerySet) -> Iterator[pa.RecordBatch]:
    path = folder / "rows.csv"
    path.write_bytes(body)
    opened = RowsFile.open(path, queries.schema, needs_others=False)
    yield opened.no_rows()
    yield from opened.batches
