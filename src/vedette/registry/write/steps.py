"""The steps of a change: queries that are added, replaced or removed, read into columns and validated.

Texts are validated by compiling them, all texts of a change together.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vedette.data.ids import INTEGER, STRING, Ids, check_in_order
from vedette.errors import QueryError, nearest
from vedette.language import compile_texts
from vedette.language.now_uses import why_not_followed
from vedette.queries.metadata import write_metadata
from vedette.queries.query_options import OPTIONS, read_options
from vedette.queries.selectivity import Selectivity
from vedette.registry.forms import ARGUMENTS, PLURALS
from vedette.registry.kinds import BORDER, KINDS
from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.times import Ttl, read_expiry
from vedette.settings import Settings

ADD, REPLACE, REMOVE = "add", "replace", "remove"
LONGEST_ID = 1000  # bytes, which fit an index entry of PostgreSQL


@dataclass(frozen=True)
class Step:
    """Queries that are added, replaced or removed together. A column that is not given is absent from `values`."""

    action: str
    ids: list[str] | list[int]
    values: dict[str, list[Any]] = field(default_factory=dict)  # by column of the table of revisions, one per query


@dataclass(frozen=True)
class Given:
    """The arguments of `add` and `replace`, or of `add_many` and `replace_many` if `is_many`."""

    written: Mapping[str, Any] = field(default_factory=dict)  # the arguments that depend on the form of the queries
    metadata: Any = None
    expires_at: Any = None
    ttl: Any = None
    is_many: bool = False


def read_step(action: str, info: SetInfo, ids: Any, given: Given) -> Step:
    """The arguments as columns. Raises QueryError if they do not fit the kind of the set."""
    if action != REMOVE:
        check_in_order(ids)
    read = read_ids(ids, info)
    values: dict[str, list[Any]] = {}
    if action != REMOVE:
        written = _read_written(info, given)
        values |= KINDS[info.kind].form.read(written, info, read, is_new=action == ADD)
        options = {name: value for name, value in given.written.items() if name in OPTIONS and value is not None}
        if options:
            values["options"] = _write_options(info, options, read, is_many=given.is_many)
    if given.metadata is not None:
        values["metadata"] = list(write_metadata(given.metadata, read))
    if given.expires_at is not None or given.ttl is not None:
        values["expires_at"] = _read_expiries(given.expires_at, given.ttl, read)
    if action == REPLACE and not values:
        raise QueryError("replace needs at least one new value: a text, window, band, zone, metadata or expiry")
    return Step(action, read, values)


def _read_written(info: SetInfo, given: Given) -> dict[str, Any]:
    """The arguments that depend on the form of the queries, under the names that `add` uses."""
    form = KINDS[info.kind].form
    names = {name: name for name in ARGUMENTS if name not in PLURALS.values()} | PLURALS if given.is_many else None
    written = {}
    for argument, value in given.written.items():
        if argument in OPTIONS:
            continue
        name = argument if names is None and argument in ARGUMENTS else (names or {}).get(argument)
        if name is None:
            known = [*(names or ARGUMENTS), *OPTIONS]
            raise TypeError(
                f"unexpected argument {argument!r}; arguments are: {', '.join(known)}{nearest(argument, known)}"
            )
        if value is None and name not in form.nullable:
            continue
        if name not in form.arguments:
            raise QueryError(f"set {info.name!r} is of kind {info.kind}; its queries have no {name!r}")
        is_one = not given.is_many and name not in ("within", "rows")
        written[name] = [value] if is_one and value is not None else value
    return written


def _write_options(info: SetInfo, options: Mapping[str, Any], ids: Sequence[Any], *, is_many: bool) -> list[str | None]:
    """The options of queries as JSON, with one text per query."""
    if BORDER not in KINDS[info.kind].operators:
        raise QueryError(
            f"set {info.name!r} is of kind {info.kind}; its queries have no {next(iter(options))!r}; options of border "
            f"monitoring need a set of kind {BORDER}"
        )
    n = len(ids)
    columns = {name: _as_list(value) if is_many else None for name, value in options.items()}
    for name, column in columns.items():
        if column is not None and len(column) != n:
            raise QueryError(
                f"has {len(column)} values for {n} queries; give one for all, or one per query", option=name
            )
    if all(column is None for column in columns.values()):
        return [_dump_options(read_options(options))] * n
    texts = []
    for place, query_id in enumerate(ids):
        own = {name: options[name] if column is None else column[place] for name, column in columns.items()}
        try:
            texts.append(_dump_options(read_options({name: None if v != v else v for name, v in own.items()})))
        except QueryError as error:
            raise error.in_query(query_id) from None
    return texts


def _dump_options(options: Mapping[str, Any]) -> str | None:
    return json.dumps(options, separators=(",", ":")) if options else None


def merge_options(old: str | None, new: str | None) -> str | None:
    """The options of a replaced query: the new ones, and those that it keeps."""
    return _dump_options((json.loads(old) if old else {}) | (json.loads(new) if new else {}))


def read_ids(ids: Any, info: SetInfo) -> list[str] | list[int]:
    """Validated ids: of the set's type, not null, distinct, and such that a database can store them."""
    known = Ids()
    known.kind = info.id_kind
    read = known.read(ids)
    if isinstance(read, np.ndarray):
        return read.tolist()  # type: ignore[no-any-return]
    names: list[str] = read.to_pylist()
    if "\0" in "".join(names):
        raise QueryError("an id contains the character NUL, which databases cannot store")
    longest = max(names, key=len, default="")
    if 4 * len(longest) > LONGEST_ID:
        longest = max(names, key=lambda name: len(name.encode()))
        if len(longest.encode()) > LONGEST_ID:
            raise QueryError(
                f"an id can have at most {LONGEST_ID:,} bytes of UTF-8; {longest[:40]!r}... has "
                f"{len(longest.encode()):,}"
            )
    return names


def kind_of(ids: Sequence[Any]) -> str | None:
    """The type of validated ids; None if there are none."""
    return None if not len(ids) else INTEGER if isinstance(ids[0], int) else STRING


def check_texts(
    info: SetInfo,
    ids: Sequence[Any],
    texts: Sequence[Any],
    limits: Settings | None,
    selectivity: Selectivity | None = None,
) -> None:
    """Raise the QueryError of the first invalid text, with the id of its query.

    `limits` and `selectivity` apply to new queries only.
    """
    schema = info.read_schema()
    if schema is None or not len(texts):
        return
    compiled = compile_texts(texts, schema, info.time_zone, ids=ids, limits=limits)
    if selectivity is not None:
        selectivity.check(list(ids), compiled.blocks, compiled.residuals)
    for residual in compiled.residuals if info.kind == BORDER else ():
        error = why_not_followed(residual)
        if error is not None:
            raise error.in_query(ids[int(residual.queries[0])])
    joined = "".join(texts)
    if "\0" in joined:
        place = next(i for i, text in enumerate(texts) if "\0" in text)
        raise QueryError("the text contains the character NUL, which databases cannot store").in_query(ids[place])
    try:
        joined.encode()
    except UnicodeEncodeError:
        place = next(i for i, text in enumerate(texts) if text.encode(errors="ignore").decode() != text)
        raise QueryError("the text contains half a surrogate pair, which is not a character").in_query(
            ids[place]
        ) from None


def _read_expiries(expires_at: Any, ttl: Any, ids: Sequence[Any]) -> list[int | Ttl | None]:
    n = len(ids)
    lists = [_as_list(value) for value in (expires_at, ttl)]
    for each in lists:
        if each is not None and len(each) != n:
            raise QueryError(f"got {len(each)} expiries for {n} queries; give one for all queries, or one per query")
    if lists == [None, None]:
        return [read_expiry(expires_at, ttl)] * n
    ends, lengths = ([one] * n if each is None else each for one, each in zip((expires_at, ttl), lists, strict=True))
    return [_read_expiry_of(*each) for each in zip(ids, ends, lengths, strict=True)]


def _as_list(value: Any) -> list[Any] | None:
    """A list with one value per query, from a list, array or column; None if the value is for all queries."""
    if isinstance(value, (str, bytes, Mapping)) or getattr(value, "ndim", 1) == 0:
        return None
    if hasattr(value, "to_pylist"):
        return list(value.to_pylist())
    return list(value) if hasattr(value, "__len__") and hasattr(value, "__getitem__") else None


def _read_expiry_of(query_id: Any, expires_at: Any, ttl: Any) -> int | Ttl | None:
    try:
        return read_expiry(expires_at, ttl)
    except QueryError as error:
        raise error.in_query(query_id) from None
