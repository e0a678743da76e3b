"""Window join states as plain content: the rows of all windows, by stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vedette.native.damage import check
from vedette.operators.carried_state import join_carried, take_carried
from vedette.operators.state import Content
from vedette.operators.stored_state import (
    Choose,
    Positions,
    StoredState,
    check_same,
    concat,
    concat_columns,
    take_column,
)


class StoredJoin(StoredState):
    """`on` is the field of each stream that decides the shard of a row; empty if its id does."""

    kind = "window join state"

    def __init__(self, on: Mapping[str, str]) -> None:
        self._on = on

    def count_rows(self, content: Content) -> dict[str, int]:
        return {name: len(part["times"]) for name, part in content["parts"].items()}

    def merge(self, content: Content, delta: Content) -> Content:
        parts = {}
        for name, new in delta["parts"].items():
            old = content["parts"][name]
            n = len(old["times"])
            kept = _take(old, np.arange(min(max(new["first"] - old["first"], 0), n), n))
            kept["rows"] = {field: kept["rows"][field] for field in new["rows"] if field in kept["rows"]}
            parts[name] = _join([kept, new]) | {"first": new["first"], "since": new["first"]}
        return delta | {"parts": parts}

    def pick(self, content: Content, choose: Choose) -> Content:
        parts = {name: _take(part, choose(name, self._decides(name, part))) for name, part in content["parts"].items()}
        return content | {"parts": parts}

    def _decides(self, stream: str, part: Content) -> Any:
        """The values that decide the shards of rows."""
        if stream not in self._on:
            return np.empty(0, np.int64) if part["ids"] is None else part["ids"][0]
        column = part["rows"].get(f"{stream}.{self._on[stream]}")
        check(column is not None or not len(part["times"]), "rows have no field that decides their shard")
        return np.empty(0, np.int64) if column is None else column[1]

    def without_counts(self, content: Content) -> Content:
        return content | {"counts": [0] * len(content["counts"])}

    def unite(self, contents: Sequence[Content]) -> Content:
        """All shards know the latest time of each stream. Rows are numbered again, in the order of their times."""
        names = list(contents[0]["parts"])
        id_types = [
            next((each["id_types"][number] for each in contents if each["id_types"][number] is not None), None)
            for number in range(len(names))
        ]
        check_same(contents, "clocks")
        return contents[0] | {
            "time_type": check_same(contents, "time_type"),
            "id_types": id_types,
            "counts": [sum(counts) for counts in zip(*(each["counts"] for each in contents), strict=True)],
            "parts": {name: _in_time_order(_join([each["parts"][name] for each in contents])) for name in names},
        }


def _in_time_order(part: Content) -> Content:
    return _take(part, np.argsort(part["times"], kind="stable")) | {"first": 0, "since": 0}


def _take(part: Content, positions: Positions) -> Content:
    return part | {
        "is_whole": True,
        "times": part["times"][positions],
        "ids": None if part["ids"] is None else take_column(part["ids"], positions),
        "rows": {name: [type_, *take_column(column, positions)] for name, (type_, *column) in part["rows"].items()},
        **take_carried(part, positions, len(part["times"])),
    }


def _join(parts: Sequence[Content]) -> Content:
    lengths = [len(part["times"]) for part in parts]
    types = {name: column[0] for part in parts for name, column in part["rows"].items()}
    with_ids = [part for part in parts if part["ids"] is not None]
    lengths_with_ids = [len(part["times"]) for part in with_ids]
    return parts[0] | {
        "is_whole": True,
        "times": concat([part["times"] for part in parts]),
        "ids": concat_columns([part["ids"] for part in with_ids], lengths_with_ids) if with_ids else None,
        "rows": {
            name: [type_, *concat_columns([_column(part, name) for part in parts], lengths)]
            for name, type_ in types.items()
        },
        **join_carried(parts, lengths),
    }


def _column(part: Content, name: str) -> list[Any] | None:
    return part["rows"][name][1:] if name in part["rows"] else None
