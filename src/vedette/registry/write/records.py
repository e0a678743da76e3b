"""Records of queries, such as lines of a file or rows of a DataFrame, as steps of a change.

A record is a dict: the arguments of `add` that its form takes, and `metadata` and `expires_at` if it has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from vedette.errors import QueryError, shown
from vedette.queries.query_options import OPTIONS
from vedette.registry.forms import WINDOWED_TEXT, Form
from vedette.registry.kinds import BORDER, KINDS

if TYPE_CHECKING:
    from vedette.registry.write.change import Change

OWN = ("metadata", "expires_at")  # optional columns of every kind
Record = Mapping[str, Any]


def add_records(
    change: Change, kind: str, ids: Sequence[Any], records: Sequence[Record], ends: Mapping[str, Any]
) -> None:
    """Add queries. An expiry in `ends` is for all of them, and overrides those of the records."""
    form = KINDS[kind].form
    own = {name: [record.get(name) for record in records] for name in OWN}
    if form is WINDOWED_TEXT:  # windows may differ in kind, so queries are added one by one
        for query_id, record in zip(ids, records, strict=True):
            end = ends or {"expires_at": record.get("expires_at")}
            with _naming(query_id):
                change.add(query_id, **_written(form, record), metadata=record.get("metadata"), **end)
        return
    more: dict[str, Any] = {"metadata": own["metadata"], **(ends or {"expires_at": own["expires_at"]})}
    more |= {
        name: [record.get(name) for record in records] for name in OPTIONS if any(name in each for each in records)
    }
    change.add_many(ids, **_columns(form, records), **more)


def replace_records(
    change: Change, kind: str, ids: Sequence[Any], records: Sequence[Record], ends: Mapping[str, Any]
) -> None:
    """Replace queries that exist. They keep what their records do not have."""
    form = KINDS[kind].form
    change.replace_many(ids, **_columns(form, records, needed_only=form is WINDOWED_TEXT), **ends)
    for name in (*(("metadata",) if ends else OWN), *OPTIONS):
        places = [place for place, record in enumerate(records) if name in record]
        if places:
            change.replace_many([ids[place] for place in places], **{name: [records[place][name] for place in places]})
    if form is WINDOWED_TEXT:
        for query_id, record in zip(ids, records, strict=True):
            sizes = {name: record[name] for name in ("within", "rows") if name in record}
            if sizes:
                with _naming(query_id):
                    change.replace(query_id, **sizes)


def take_metadata(value: Any) -> dict[str, Any] | None:
    """A JSON object, as a dict or as a text. An empty text is None."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            value = False
    if value is not None and not isinstance(value, dict):
        raise QueryError("its metadata is not a JSON object", field="metadata")
    return value


def has_options(kind: str) -> bool:
    """Whether queries of a kind of set have the options of border monitoring."""
    return BORDER in KINDS[kind].operators


def take_time(value: Any) -> datetime | None:
    """A time, in UTC if it has no zone; a date is its midnight."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value) if value.strip() else None
        except ValueError:
            raise _not_a_time(value) from None
    if value is None:
        return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise _not_a_time(value)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _not_a_time(value: Any) -> QueryError:
    return QueryError(f"its expires_at is {shown(value)}; it must be a time such as 2026-03-02T14:00:00Z")


def _written(form: Form, record: Record) -> dict[str, Any]:
    """A query as arguments of `add`."""
    return {name: record[name] for name in form.arguments if name in record}


def _columns(form: Form, records: Sequence[Record], *, needed_only: bool = False) -> dict[str, Any]:
    """Queries as arguments of `add_many`. A side that a record lacks is null."""
    plurals = {name: plural for plural, name in form.plurals.items()} | {"text": "texts"}
    names = [name for name in form.arguments if any(name in record for record in records)]
    names = ["text"] if needed_only else names
    return {plurals.get(name, name): [record.get(name) for record in records] for name in names}


@contextmanager
def _naming(query_id: Any) -> Iterator[None]:
    """Add the query's id to errors of the body."""
    try:
        yield
    except QueryError as error:
        raise error.in_query(query_id) from None
