"""Import of queries into a registry: CSV, JSON lines, Parquet or GeoJSON, with the columns that an export writes.

A file has an id and the columns of the set's kind: `where`; for window joins also `within` and `rows`; for band joins
`low` and `high`; for moving joins the sides of zones: `x_low`, `x_high`, `y_low`, `y_high`. `metadata`, a JSON object,
and `expires_at` are optional, and in sets for border the options `dwell`, `margin`, `expire_after`, `cooldown` and
`once`. All other columns become metadata, as do the properties of GeoJSON features.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.cli.query.inputs import read_value
from vedette.cli.set_options import read_id
from vedette.data.schema import Schema
from vedette.errors import FileError, QueryError
from vedette.files.lines import Kind, Lines, read_lines
from vedette.files.queries import is_geojson, read_polygons
from vedette.queries.query_options import OPTIONS, take_options
from vedette.registry.forms import TEXT
from vedette.registry.kinds import KINDS
from vedette.registry.read.query_info import PARKED
from vedette.registry.store.times import read_expiry
from vedette.registry.write.records import (
    OWN,
    add_records,
    has_options,
    replace_records,
    take_metadata,
    take_time,
)
from vedette.registry.write.samples import selectivity_of
from vedette.registry.write.steps import check_texts
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo
    from vedette.registry.registry import Registry
    from vedette.registry.write.change import Change


def import_queries(
    registry: Registry,
    info: SetInfo,
    file: str,
    form: str,
    ends: Mapping[str, Any],
    *,
    replace: bool,
    skip_bad: bool,
    repair: bool = False,
) -> dict[str, Any]:
    """Add the queries of a file in one version: all, or with `skip_bad` the valid ones."""
    with _named(file, form) as path:
        lines = _with_ids(_read(path, info, "standard input" if file == "-" else None, repair), info)
    selectivity = selectivity_of(registry.database, info)
    done: dict[str, Any] = {"added": 0, "replaced": 0, "version": info.version}
    read_expiry(ends["expires_at"], ends["ttl"])  # before any line: the error is about all of them
    ends = {name: value for name, value in ends.items() if value is not None}

    def gather(ids: list[Any], values: list[dict[str, Any]], ends: Mapping[str, Any]) -> tuple[Change, int]:
        """The change that adds lines, not yet committed, and how many queries it replaces."""
        existing = registry.find_ids(info.name, ids) if replace else {}
        change = registry.change(info.name)
        for write, exists in ((replace_records, True), (add_records, False)):
            places = [place for place, each in enumerate(ids) if (each in existing) is exists]
            if places:
                write(change, info.kind, [ids[place] for place in places], [values[place] for place in places], ends)
        return change, len(existing)

    def put(ids: list[Any], values: list[dict[str, Any]]) -> None:
        if not ids:
            return
        change, n_replaced = gather(ids, values, ends)
        done["version"] = change.commit()
        done["added"] += len(ids) - n_replaced
        done["replaced"] += n_replaced

    def check(ids: list[Any], values: list[dict[str, Any]]) -> None:
        gather(ids, values, {})
        if "text" in KINDS[info.kind].form.arguments:
            check_texts(info, ids, [value["text"] for value in values], settings(), selectivity)

    def skip_existing(lines: Lines) -> Lines:
        """The lines whose ids are new, or may be replaced; the others are bad."""
        return lines if replace else _without(lines, registry.find_ids(info.name, lines.ids), info)

    if skip_bad:
        lines = _keep_valid(skip_existing(lines), check)
        try:
            put(lines.ids, lines.values)
        except QueryError:  # an id that was added meanwhile
            free = skip_existing(lines)
            if len(free.ids) == len(lines.ids):
                raise
            put(free.ids, free.values)
    else:
        _add_together(lines, put, check, skip_existing)
    lines.report()
    return (
        done | ({"skipped": len(lines.bad)} if skip_bad else {}) | ({"repaired": len(lines.repaired)} if repair else {})
    )


def _without(lines: Lines, taken: Mapping[Any, str], info: SetInfo) -> Lines:
    """The lines whose ids do not exist in the set."""
    for number, query_id in zip(lines.numbers, lines.ids, strict=True):
        if query_id in taken:
            lines.add_bad(number, QueryError(f"{_why_taken(taken[query_id])}; use --replace to replace it"), query_id)
    return lines.take([place for place, query_id in enumerate(lines.ids) if query_id not in taken])


def _why_taken(state: str) -> str:
    if state == PARKED:
        return "its id belongs to a parked query, whose text is invalid under the set's schema"
    return "its id already exists in the set"


def _keep_valid(lines: Lines, check: Callable[..., None]) -> Lines:
    """The lines that `check` accepts; the others are bad."""
    good: set[Any] = set()

    def take(ids: list[Any], values: list[dict[str, Any]]) -> None:
        check(ids, values)
        good.update(ids)

    lines.add_to(take, skip_bad=True)
    return lines.take([place for place, query_id in enumerate(lines.ids) if query_id in good])


def _add_together(
    lines: Lines, put: Callable[..., None], check: Callable[..., None], skip_existing: Callable[[Lines], Lines]
) -> None:
    """Add all lines, or none. If one is invalid, `check` finds it, and the error has its number."""
    lines.raise_bad()
    try:
        put(lines.ids, lines.values)
    except QueryError:
        lines.add_to(check, skip_bad=False)  # raises at the line
        skip_existing(lines).raise_bad()
        raise


@contextmanager
def _named(file: str, form: str) -> Iterator[Path]:
    """The file, or standard input as a temporary file with the extension of its format."""
    if file != "-":
        yield Path(file)
        return
    if form not in ("csv", "jsonl"):
        raise FileError(f"--format is csv or jsonl; got {form!r}")
    with tempfile.TemporaryDirectory(prefix="vedette-") as folder:
        path = Path(folder) / f"standard-input.{form}"
        path.write_bytes(sys.stdin.buffer.read())
        yield path


def _read(path: Path, info: SetInfo, name: str | None, repair: bool) -> Lines:
    is_csv = path.suffix.lower() == ".csv"
    form = KINDS[info.kind].form
    take = _with_own(form.take, is_csv, has_options(info.kind))
    more = tuple(name for name in form.written if name not in form.needed)
    kind = Kind(*form.words, form.needed, form.needs, take, more, has_rest=True)
    if form is TEXT and is_geojson(path):
        return read_polygons(path, Schema.parse(info.schema[""]), kind, repair=repair)
    return read_lines(path, kind, name)


def _with_own(take: Callable[..., dict[str, Any]], is_csv: bool, takes_options: bool) -> Callable[..., dict[str, Any]]:
    """Reads the columns of a line's kind, and options, metadata and expiry from its other columns."""

    def take_all(*values: Any) -> dict[str, Any]:
        *own, rest = values
        options = {name.lower(): each for name, each in rest.items() if takes_options and name.lower() in OPTIONS}
        rest = {name: each for name, each in rest.items() if name.lower() not in options}
        return {**take(*own), **take_options(options), **_take_own(rest, is_csv)}

    return take_all


def _take_own(rest: Mapping[str, Any], is_csv: bool) -> dict[str, Any]:
    """Metadata and expiry, if the line has columns for them; an empty value means none."""
    further = {name: value for name, value in rest.items() if name.lower() not in OWN}
    named = {name.lower(): value for name, value in rest.items() if name not in further}
    own: dict[str, Any] = {}
    if further or "metadata" in named:
        metadata = take_metadata(named.get("metadata")) or {}
        read = read_value if is_csv else _as_json
        own["metadata"] = metadata | {name: read(value) for name, value in further.items() if value not in (None, "")}
    if "expires_at" in named:
        own["expires_at"] = take_time(named["expires_at"])
    return own


def _as_json(value: Any) -> Any:
    """A value as JSON: times and decimals of Parquet become texts."""
    if isinstance(value, str | int | float):
        return value
    return json.loads(
        json.dumps(value, default=lambda each: each.isoformat() if hasattr(each, "isoformat") else str(each))
    )


def _with_ids(lines: Lines, info: SetInfo) -> Lines:
    """The lines whose ids have the type of the set's ids, each id once; the others are bad."""
    first: dict[Any, int] = {}  # the line that has the id
    places = []
    for place, (number, written) in enumerate(zip(lines.numbers, lines.ids, strict=True)):
        try:
            query_id = _fit_id(written, info)
        except QueryError as error:
            lines.add_bad(number, error, written)
            continue
        if first.setdefault(query_id, number) != number:
            lines.add_bad(number, QueryError(lines.repeats(first[query_id])), query_id)
            continue
        lines.ids[place] = query_id
        places.append(place)
    return lines.take(places)


def _fit_id(query_id: str | int, info: SetInfo) -> str | int:
    """An id with the type of the set's ids; CSV has only texts."""
    if isinstance(query_id, str):
        return read_id(query_id, info)
    if info.id_kind == "string" and isinstance(query_id, int):
        raise QueryError(f"the ids of set {info.name!r} are strings; got the number {query_id}")
    return query_id
