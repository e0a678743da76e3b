"""JSON documents of a registry: the windows of joins."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


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
