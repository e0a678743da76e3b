"""The queries of a set at one version: written to a file that an import reads, or printed.

They are read and written one page at a time, each page in its own transaction. So memory does not grow with the set,
and writers of the set do not wait.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vedette.cli.query.records import columns_of
from vedette.cli.records import Answer, print_records
from vedette.errors import FileError
from vedette.files.answers import open_answer
from vedette.files.rows import format_of
from vedette.queries.query_options import OPTIONS
from vedette.registry.forms import BAND, ZONE
from vedette.registry.kinds import KINDS
from vedette.registry.records import query_record
from vedette.registry.write.records import has_options

if TYPE_CHECKING:
    from vedette.registry.read.query_info import QueryInfo
    from vedette.registry.read.set_info import SetInfo
    from vedette.registry.registry import Registry

PAGE = 10_000  # queries per page
NUMBERS = (*BAND.written, *ZONE.written)  # columns of files that have numbers
_NAMES = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet", "json": "JSON"}
_SAME = {("csv", "csv"), ("jsonl", "json")}  # formats of a file that agree with an option


def export_queries(registry: Registry, info: SetInfo, out: Path | None, answer: Answer, prefix: str | None) -> int:
    """Write the queries that are active now, ordered by id. Returns how many. Later changes are not included."""
    if out is not None:
        _check_form(out, answer)
    now = registry.end_due(info)
    counted = [0]
    pages = _count(_pages(registry, now, prefix), counted)
    if out is None and answer.form == "json":
        _print_json(pages, now)
    elif out is None and answer.form == "table":
        _print_tables(pages, now)
    else:
        schema = _file_schema(now)
        with open_answer(out) as file:
            file.write(pa.RecordBatch.from_pylist([], schema))
            for page in pages:
                file.write(pa.RecordBatch.from_pylist([to_row(query, now) for query in page], schema))
    return counted[0]


def to_row(query: QueryInfo, info: SetInfo) -> dict[str, Any]:
    """A query as a line of a file: texts and numbers."""
    return {
        "id": query.id,
        **KINDS[info.kind].form.to_line(query),
        **({name: _as_text(query.options.get(name)) for name in OPTIONS} if has_options(info.kind) else {}),
        "metadata": json.dumps(query.metadata, ensure_ascii=False) if query.metadata else None,
        "expires_at": None if query.expires_at is None else query.expires_at.isoformat(),
    }


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _check_form(out: Path, answer: Answer) -> None:
    """Raise if the file's extension and the format option disagree."""
    named = format_of(out)
    if not answer.is_asked or (named, answer.form) in _SAME:
        return
    if answer.form == "table":
        raise FileError(f"--table prints to the terminal and cannot be written to a file; omit --table or -o {out}")
    raise FileError(
        f"the extension of {out} means {_NAMES[named]}, but --{answer.form} means {_NAMES[answer.form]}; "
        f"omit one of them"
    )


def _pages(registry: Registry, info: SetInfo, prefix: str | None) -> Iterator[list[QueryInfo]]:
    """The queries that are active at the version of `info`."""
    after = None
    while page := registry.list(info, prefix=prefix, after=after, limit=PAGE, at=info.version):
        yield page
        after = page[-1].id


def _count(pages: Iterator[list[QueryInfo]], counted: list[int]) -> Iterator[list[QueryInfo]]:
    """The pages; their queries are added to the count."""
    for page in pages:
        counted[0] += len(page)
        yield page


def _print_json(pages: Iterator[list[QueryInfo]], info: SetInfo) -> None:
    """Print one array, one query per line."""
    before = "["
    for page in pages:
        for record in _records(page, info):
            text = json.dumps(record, ensure_ascii=False, default=lambda moment: moment.isoformat())
            print(f"{before}\n  {text}", end="")
            before = ","
    print("[]" if before == "[" else "\n]")


def _print_tables(pages: Iterator[list[QueryInfo]], info: SetInfo) -> None:
    """Print a table per page."""
    columns = _columns(info)
    page = next(pages, [])
    print_records(_records(page, info), columns, "table")
    for page in pages:
        print_records(_records(page, info), columns, "table")


def _records(page: list[QueryInfo], info: SetInfo) -> list[dict[str, Any]]:
    """Queries as other commands print them, in the columns of a file."""
    return [{name: record[name] for name in _columns(info)} for record in (query_record(query, info) for query in page)]


def _columns(info: SetInfo) -> tuple[str, ...]:
    return (*columns_of(info), *(OPTIONS if has_options(info.kind) else ()), "metadata", "expires_at")


def _file_schema(info: SetInfo) -> pa.Schema:
    types = dict.fromkeys(_columns(info), pa.string())
    types |= {name: pa.float64() for name in NUMBERS if name in types}
    return pa.schema(types | {"id": pa.int64() if info.id_kind == "integer" else pa.string()})
