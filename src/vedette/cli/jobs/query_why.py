"""`vedette query why`: explains a query of a registry for one row, or for the first rows of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vedette.cli.query.inputs import read_moment
from vedette.errors import QueryError, RowError, count
from vedette.files.json_text import read_json
from vedette.files.one_row import convert_row, read_json_row
from vedette.files.rows import read_sample
from vedette.registry.kinds import find_kind
from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry

_MOST_ROWS = 100


def explain_query(
    registry: Registry,
    info: SetInfo,
    query_id: str | int,
    row: str | None,
    file: Path | None,
    now: str | None,
    *,
    as_json: bool,
) -> str:
    """Print the explanation of each row. Returns a summary."""
    if (row is None) == (file is None):
        raise QueryError("give a row with --row, or a file of rows with --rows")
    query = registry.get(info.name, query_id)
    kind = find_kind(info.kind)
    if query.text is None:
        raise QueryError(f"set {info.name!r} is of kind {info.kind}, whose queries have no conditions to explain")
    queries = kind.make(kind.load_class(), info)
    if kind.schemas == "streams":
        queries.add(query_id, query.text, **(query.window or {}))
        if file is not None:
            raise QueryError("a join is explained for one row of each stream; give them with --row")
        found = [queries.why(query_id, **_read_pair(row or "", queries))]
    else:
        queries.add(query_id, query.text)
        moment = None if now is None else read_moment(now, "now")
        rows = [read_json_row(row, queries.schema)] if row is not None else _read_file(file, queries.schema)
        found = [queries.why(query_id, each, now=moment) for each in rows]
    if as_json:
        told: Any = [each.to_dict() for each in found]
        print(json.dumps(told if row is None else told[0], indent=2, ensure_ascii=False))
    else:
        print("\n\n".join(map(str, found)))
    return f"{count(len(found), 'row')}, {count(sum(each.holds for each in found), 'match', 'matches')}"


def _read_file(file: Path | None, schema: Any) -> list[dict[str, Any]]:
    assert file is not None
    return list(read_sample(file, schema).slice(0, _MOST_ROWS).to_pylist())


def _read_pair(text: str, queries: Any) -> dict[str, Mapping[str, Any]]:
    try:
        read = read_json(text, parse_float=str)
    except ValueError as error:
        raise RowError(f"the row is not valid JSON: {error}") from None
    if not isinstance(read, dict) or set(read) != set(queries.streams):
        wanted = ", ".join(f'"{stream}": {{...}}' for stream in queries.streams)
        raise RowError(f"the row of a join is a JSON object with a row of each stream: {{{wanted}}}")
    return {stream: convert_row(each, queries.schema_of(stream)) for stream, each in read.items()}
