"""The metadata of queries: JSON objects that their owners set and answers can carry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

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
