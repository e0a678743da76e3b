"""The steps of a change as its owner takes them: queries added, replaced or removed, read into columns and checked.

Texts are checked by compiling them, all of a change together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vedette.data.ids import INTEGER, STRING, Ids, check_in_order
from vedette.errors import QueryError
from vedette.language import compile_texts
from vedette.operators.band_join.ends import read_ends
from vedette.operators.window_join.windows import read_windows
from vedette.queries.query_texts import as_texts
from vedette.queries.selectivity import Selectivity
from vedette.registry.read.set_info import BAND_JOIN, WINDOW_JOIN, SetInfo
from vedette.registry.store.times import Ttl, read_expiry
from vedette.registry.write.documents import write_metadata, write_windows
from vedette.settings import Settings

ADD, REPLACE, REMOVE = "add", "replace", "remove"
LONGEST_ID = 1000  # bytes: what an index of PostgreSQL holds, and enough for a name


class _NotGiven:
    """In place of an end of a band that its owner does not speak of; None says that there is no end."""

    def __repr__(self) -> str:
        return "not given"


NOT_GIVEN: Any = _NotGiven()


@dataclass(frozen=True)
class Step:
    """Queries that are added, replaced or removed together. A column that is not given is absent from `values`."""

    action: str
    ids: list[str] | list[int]
    values: dict[str, list[Any]] = field(default_factory=dict)  # by column of the table of lives, one a query


@dataclass(frozen=True)
class Given:
    """What an owner gives for some queries, in the words of `add` and `add_many`."""

    texts: Any = None
    lows: Any = NOT_GIVEN
    highs: Any = NOT_GIVEN
    within: Any = None
    rows: Any = None
    metadata: Any = None
    expires_at: Any = None
    ttl: Any = None


def read_step(action: str, info: SetInfo, ids: Any, given: Given) -> Step:
    """What an owner gives, as columns. Raises QueryError where it does not fit the kind of the set."""
    if action != REMOVE:
        check_in_order(ids)
    read = read_ids(ids, info)
    n = len(read)
    values: dict[str, list[Any]] = {}
    _check_kind(info, given)
    needs = action == ADD
    if info.kind == BAND_JOIN:
        lacking = [end is NOT_GIVEN for end in (given.lows, given.highs)]
        if needs or not all(lacking):
            if any(lacking):
                raise QueryError(
                    f"set {info.name!r} is of band joins: a query needs its ends, low and high; one may be none"
                )
            named = np.array(read) if kind_of(read) == INTEGER else read
            lows, highs = read_ends(given.lows, given.highs, n, named)
            values["low"], values["high"] = lows.tolist(), highs.tolist()
    elif given.texts is not None or needs:
        if given.texts is None:
            raise QueryError(f"set {info.name!r} is of kind {info.kind}: a query needs its text")
        values["text"] = list(as_texts(given.texts))
        if len(values["text"]) != n:
            raise QueryError(f"got {n} ids but {len(values['text'])} texts; each query needs both")
    if info.kind == WINDOW_JOIN and (needs or given.within is not None or given.rows is not None):
        read_windows(given.within, given.rows, info.streams, n, read)
        values["windows"] = list(write_windows(given.within, given.rows, info.streams, n))
    if given.metadata is not None:
        values["metadata"] = list(write_metadata(given.metadata, read))
    if given.expires_at is not None or given.ttl is not None:
        values["expires_at"] = _read_expiries(given.expires_at, given.ttl, read)
    if action == REPLACE and not values:
        raise QueryError("replace needs what to replace: another text, window, band, metadata or expiry")
    return Step(action, read, values)


def read_ids(ids: Any, info: SetInfo) -> list[str] | list[int]:
    """Ids as the owner gives them, checked: of the set's kind, none null, none twice, none that a database refuses."""
    known = Ids()
    known.kind = info.id_kind
    read = known.read(ids)
    if isinstance(read, np.ndarray):
        return read.tolist()  # type: ignore[no-any-return]
    names: list[str] = read.to_pylist()
    if "\0" in "".join(names):
        raise QueryError("an id holds the character NUL, which databases refuse")
    longest = max(names, key=len, default="")
    if 4 * len(longest) > LONGEST_ID:
        longest = max(names, key=lambda name: len(name.encode()))
        if len(longest.encode()) > LONGEST_ID:
            raise QueryError(
                f"an id has at most {LONGEST_ID:,} bytes; {longest[:40]!r}... has {len(longest.encode()):,}"
            )
    return names


def kind_of(ids: Sequence[Any]) -> str | None:
    """The kind of ids that were read."""
    return None if not len(ids) else INTEGER if isinstance(ids[0], int) else STRING


def check_texts(
    info: SetInfo,
    ids: Sequence[Any],
    texts: Sequence[Any],
    limits: Settings | None,
    selectivity: Selectivity | None = None,
) -> None:
    """Raise the QueryError of the first bad text, naming its query.

    `limits` and `selectivity` are for queries that are new.
    """
    schema = info.read_schema()
    if schema is None or not len(texts):
        return
    compiled = compile_texts(texts, schema, info.time_zone, ids=ids, limits=limits)
    if selectivity is not None:
        selectivity.check(list(ids), compiled.blocks, compiled.residuals)
    joined = "".join(texts)
    if "\0" in joined:
        place = next(i for i, text in enumerate(texts) if "\0" in text)
        raise QueryError("the text holds the character NUL, which databases refuse").in_query(ids[place])
    try:
        joined.encode()
    except UnicodeEncodeError:
        place = next(i for i, text in enumerate(texts) if text.encode(errors="ignore").decode() != text)
        raise QueryError("the text holds half a surrogate pair, which is no character").in_query(ids[place]) from None


def _check_kind(info: SetInfo, given: Given) -> None:
    """Raise where something is given that queries of this kind do not have."""
    has_band = info.kind == BAND_JOIN
    wrong = {
        "low": not (has_band or given.lows is None or given.lows is NOT_GIVEN),
        "high": not (has_band or given.highs is None or given.highs is NOT_GIVEN),
        "text": given.texts is not None and has_band,
        "within": given.within is not None and (info.kind != WINDOW_JOIN or info.windows == "rows"),
        "rows": given.rows is not None and (info.kind != WINDOW_JOIN or info.windows == "time"),
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            kind = info.kind if info.kind != WINDOW_JOIN else f"{info.kind} over windows of {info.windows}"
            raise QueryError(f"set {info.name!r} is of kind {kind}; its queries have no {name!r}")


def _read_expiries(expires_at: Any, ttl: Any, ids: Sequence[Any]) -> list[int | Ttl | None]:
    n = len(ids)
    lists = [_as_list(value) for value in (expires_at, ttl)]
    for each in lists:
        if each is not None and len(each) != n:
            raise QueryError(f"got {len(each)} expiries for {n} queries; give one for all, or one a query")
    if lists == [None, None]:
        return [read_expiry(expires_at, ttl)] * n
    ends, lengths = ([one] * n if each is None else each for one, each in zip((expires_at, ttl), lists, strict=True))
    return [_read_expiry_of(*each) for each in zip(ids, ends, lengths, strict=True)]


def _as_list(value: Any) -> list[Any] | None:
    """A list, an array or a column with one value a query; None where it is one for all."""
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
