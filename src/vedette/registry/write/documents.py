"""JSON documents of a registry: the metadata of queries, and the windows of joins."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vedette.errors import QueryError, shown


def write_metadata(metadata: Any, ids: Sequence[Any]) -> list[str | None]:
    """Metadata as JSON, from one dict for all queries or a sequence with one per query. An empty dict gives None."""
    n = len(ids)
    if metadata is None or isinstance(metadata, Mapping):
        return [_write_metadata(metadata)] * n
    if isinstance(metadata, str) or not isinstance(metadata, Sequence):
        raise QueryError(
            f"metadata must be one dict for all queries or a list with one dict per query; got {shown(metadata)}"
        )
    if len(metadata) != n:
        raise QueryError(
            f"got {len(metadata)} metadata for {n} queries; give one dict for all queries, or one per query"
        )
    return [_write_of(query_id, each) for query_id, each in zip(ids, metadata, strict=True)]


def _write_of(query_id: Any, metadata: Any) -> str | None:
    try:
        return _write_metadata(metadata)
    except QueryError as error:
        raise error.in_query(query_id) from None


def _write_metadata(metadata: Any) -> str | None:
    if not metadata and (metadata is None or isinstance(metadata, Mapping)):
        return None
    if not isinstance(metadata, Mapping) or not all(isinstance(name, str) for name in metadata):
        raise QueryError(f"metadata must be a dict with string keys, such as {{'owner': 'ann'}}; got {shown(metadata)}")
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise QueryError(f"metadata must be valid JSON: {error}") from None
    if "\\u0000" in text:
        raise QueryError("metadata contains the character NUL, which databases cannot store")
    return text


def write_windows(within: Any, rows: Any, streams: Sequence[str], n: int) -> list[str]:
    """The windows of `n` queries as JSON. `read_windows` has validated them."""
    given = {"within": within, "rows": rows}
    lists = {name: _each(value, n) for name, value in given.items() if value is not None}
    if all(isinstance(each, _Same) for each in lists.values()):
        return [_dump({name: each.value for name, each in lists.items()})] * n
    return [_dump({name: each[query] for name, each in lists.items()}) for query in range(n)]


class _Same:
    """One value for all queries."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, query: int) -> Any:
        return self.value


class _ByStream:
    """One value per query and stream."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getitem__(self, query: int) -> Any:
        return {stream: each[query] for stream, each in self.values.items()}


def _each(value: Any, n: int) -> Any:
    if isinstance(value, Mapping):
        by_stream = {stream: _each(each, n) for stream, each in value.items() if each is not None}
        if all(isinstance(each, _Same) for each in by_stream.values()):
            return _Same({stream: each.value for stream, each in by_stream.items()})
        return _ByStream(by_stream)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0:
        return _Same(_plain(value))
    return [_plain(each) for each in (value.to_pylist() if hasattr(value, "to_pylist") else value)]


def _plain(value: Any) -> Any:
    """A window's length as a JSON value."""
    if isinstance(value, np.timedelta64):
        value = value.astype("m8[us]").item()
    if isinstance(value, datetime.timedelta):
        return f"{value // datetime.timedelta(microseconds=1)} microseconds"
    return value.item() if isinstance(value, np.generic) else value


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
