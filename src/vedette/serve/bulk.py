"""Many changes of queries as JSON lines: one transaction, and a report per line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from vedette.data.ids import INTEGER
from vedette.errors import QueryError, RegistryError, VedetteError, count, shown
from vedette.files.json_text import read_json
from vedette.language import compile_texts
from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry
from vedette.registry.write.change import Change
from vedette.serve.editing import Editor
from vedette.serve.models import NewQuery
from vedette.serve.problems import Problem, about

OPERATIONS = ("add", "replace", "put", "remove")
_DID = {"add": "added", "replace": "replaced", "remove": "removed"}
_MOST_LINES = 1_000_000


@dataclass
class BulkLine:
    """One line: what it asks for, or what is wrong with it."""

    number: int
    operation: str = ""  # as asked for
    step: str = ""  # what is done: put is add or replace, by whether the query exists
    id: Any = None
    given: dict[str, Any] = field(default_factory=dict)
    error: VedetteError | Problem | None = None
    measured: dict[str, Any] = field(default_factory=dict)  # the share of rows that the query matches

    def to_report(self) -> dict[str, Any]:
        report: dict[str, Any] = {"line": self.number, "id": self.id}
        if self.error is None:
            return {**report, "did": _DID[self.step], **self.measured}
        if isinstance(self.error, Problem):
            return {**report, "did": "nothing", "error": {"message": self.error.detail}}
        return {**report, "did": "nothing", "error": {"message": self.error.reason, **about(self.error)}}


def read_lines(body: bytes) -> list[BulkLine]:
    """The lines of a body. Empty ones are left out."""
    written = [(number, text) for number, text in enumerate(body.split(b"\n"), 1) if text.strip()]
    if len(written) > _MOST_LINES:
        raise Problem(413, "too_many_lines", f"the body has {len(written):,} lines; at most {_MOST_LINES:,} fit")
    return [_read_line(number, text) for number, text in written]


def _read_line(number: int, text: bytes) -> BulkLine:
    line = BulkLine(number)
    try:
        try:
            read = read_json(text)
        except ValueError as error:
            raise QueryError(f"it is not valid JSON: {error}") from None
        if not isinstance(read, dict):
            raise QueryError(f"a line is a JSON object with op, id and where; got {shown(read)}")
        line.operation = read.pop("op", "add")
        if line.operation not in OPERATIONS:
            raise QueryError(f"op is one of: {', '.join(OPERATIONS)}; got {shown(line.operation)}")
        try:
            parsed = NewQuery.model_validate(read)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"][:1]))
            raise QueryError(f"{where}: {first['msg']}" if where else first["msg"]) from None
        line.id, line.given = parsed.id, parsed.to_arguments()
    except QueryError as error:
        line.error = error
    return line


def write_lines(
    editor: Editor, lines: list[BulkLine], expect_version: int | None, *, skip_invalid: bool
) -> dict[str, Any]:
    """Write all lines, or with `skip_invalid` the valid ones; returns the report."""
    for line in lines:
        if line.error is None:
            try:
                if "metadata" in line.given:
                    line.given = editor.owned(line.given)
            except (QueryError, Problem) as error:
                line.error = error
    done: list[BulkLine] = []

    def steps(change: Change, info: SetInfo) -> None:
        done.clear()
        _judge(editor, info, lines)
        invalid = [line for line in lines if line.error is not None]
        if invalid and not skip_invalid:
            raise Problem(
                400,
                "invalid_lines",
                f"{len(invalid):,} of {count(len(lines), 'line')} are invalid; nothing was changed",
                lines=[line.to_report() for line in invalid[:1000]],
            )
        for line in lines:
            if line.error is None:
                _add_step(editor, change, line)
                done.append(line)
        added = {line.id for line in done if line.step == "add"}
        removed = {line.id for line in done if line.step == "remove"}
        editor.check_room(len(added - removed), [*(removed - added)])

    version = editor.write(steps, expect_version)
    made = [line.step for line in done]
    return {
        "version": version,
        "added": made.count("add"),
        "replaced": made.count("replace"),
        "removed": made.count("remove"),
        "invalid": len(lines) - len(done),
        "lines": [line.to_report() for line in lines],
    }


def _add_step(editor: Editor, change: Change, line: BulkLine) -> None:
    if line.step == "remove":
        change.remove(line.id)
    elif line.step == "add":
        change.add(line.id, **editor.owned(line.given))
    else:
        change.replace(line.id, **line.given)


def _judge(editor: Editor, info: SetInfo, lines: list[BulkLine]) -> None:
    """Note what is wrong with each line: its id, its text, or that it is somebody else's."""
    _judge_ids(editor.registry, editor, info, [line for line in lines if line.error is None])
    time_type = editor.time_type(info)
    for line in lines:
        try:
            editor.check_durations(line.given, time_type)
        except QueryError as unfit:
            line.error = line.error or unfit
    texts = [line for line in lines if line.error is None and isinstance(line.given.get("text"), str)]
    schema = info.read_schema()
    if schema is None or not texts:
        return
    errors: list[tuple[int, QueryError]] = []
    compiled = compile_texts(
        [line.given["text"] for line in texts],
        schema,
        info.time_zone,
        ids=[line.id for line in texts],
        limits=editor.options.limits_of_queries,
        errors=errors,
    )
    for place, error in errors:
        texts[place].error = error
    sample = editor.sample(info)
    shares = None if sample is None else sample.measure(compiled, len(texts))
    for line, share in zip(texts, shares or (), strict=False):
        if sample is not None and line.error is None:
            try:
                sample.check(line.id, share)
                line.measured = sample.to_record(share)
            except Problem as problem:
                line.error = problem


def _judge_ids(registry: Registry, editor: Editor, info: SetInfo, lines: list[BulkLine]) -> None:
    wanted = (
        int if info.id_kind == INTEGER else str if info.id_kind is not None else type(lines[0].id) if lines else str
    )
    for line in lines:
        if type(line.id) is not wanted:
            kind = "integers" if wanted is int else "strings"
            line.error = QueryError(f"the ids of set {info.name!r} are {kind}; got {shown(line.id)}")
    rest = [line for line in lines if line.error is None]
    distinct = list(dict.fromkeys(line.id for line in rest))
    try:
        known: set[Any] = set(registry.find_ids(info.name, distinct)) if distinct else set()
    except (QueryError, RegistryError) as error:
        for line in rest:
            line.error = error
        return
    own = _own_ids(editor, known)
    for line in rest:
        exists = line.id in known
        line.step = line.operation
        if line.operation == "put":
            line.step = "replace" if exists else "add"
        if line.step == "add" and exists:
            line.error = QueryError(f"id {line.id!r} already exists in set {info.name!r}; use replace, or another id")
        elif line.step != "add" and (not exists or line.id not in own):
            line.error = QueryError(f"no query {line.id!r} in set {info.name!r}")
        elif line.step == "add":
            known.add(line.id)
            own.add(line.id)
        elif line.step == "remove":
            known.discard(line.id)


def _own_ids(editor: Editor, known: set[Any]) -> set[Any]:
    """The ids of existing queries that the caller may change."""
    if editor.caller.owner is None:
        return set(known)
    return {query_id for query_id in known if editor.sees(editor.registry.get(editor.name, query_id))}
