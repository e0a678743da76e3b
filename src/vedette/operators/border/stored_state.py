"""Border states as plain content: the last row of each key, and its open pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vedette.native.damage import check_within
from vedette.operators.border.deadlines import no_deadlines
from vedette.operators.border.silent_keys import NOT_SILENT
from vedette.operators.carried_state import join_carried, take_carried
from vedette.operators.state import Content
from vedette.operators.stored_state import (
    Choose,
    Positions,
    StoredState,
    concat,
    concat_columns,
    is_among,
    take,
    take_column,
)

_PART = "keys"
_PAIRS = ("lingering", "pending", "cooling")


class StoredBorder(StoredState):
    kind = "border state"

    def count_rows(self, content: Content) -> dict[str, int]:
        return {_PART: len(content["parts"][_PART]["keys"])}

    def merge(self, content: Content, delta: Content) -> Content:
        old, new = content["parts"][_PART], delta["parts"][_PART]
        gone = is_among(old["keys"], concat([new["keys"], *new["freed"]]))
        kept = _take(old, np.flatnonzero(~gone))
        return delta | {"parts": {_PART: _join([kept, new | {"freed": []}])}}

    def pick(self, content: Content, choose: Choose) -> Content:
        part = content["parts"][_PART]
        return content | {"parts": {_PART: _take(part, choose(_PART, part["keys"]))}}

    def without_counts(self, content: Content) -> Content:
        return content | {"counts": [0] * len(content["counts"])}

    def unite(self, contents: Sequence[Content]) -> Content:
        """The shards of a stream may have seen their last rows at different times and versions."""
        clocks = [content["clock"] for content in contents if content["clock"] is not None]
        reached = [content["reached"] for content in contents if content.get("reached") is not None]
        return contents[0] | {
            "time_type": next((each["time_type"] for each in contents if each["time_type"]), ""),
            "clock": max(clocks, default=None),
            "reached": max(reached, default=None),
            "counts": [sum(counts) for counts in zip(*(each["counts"] for each in contents), strict=True)],
            "delays": {name: any(each["delays"][name] for each in contents) for name in contents[0]["delays"]},
            "parts": {_PART: _join([each["parts"][_PART] for each in contents])},
        }


def _take(part: Content, positions: Positions) -> Content:
    moved = np.full(len(part["keys"]), -1, np.int32)  # the new position of each key
    moved[positions] = np.arange(len(positions), dtype=np.int32)
    return {
        "is_whole": True,
        "keys": take(part["keys"], positions),
        "freed": [],
        "times": part["times"][positions],
        "versions": part["versions"][positions],
        "deadlines": None if part.get("deadlines") is None else [each[positions] for each in part["deadlines"]],
        "silent": None if part.get("silent") is None else [each[positions] for each in part["silent"]],
        "rows": {name: take_column(column, positions) for name, column in part["rows"].items()},
        **{name: _take_pairs(part[name], moved) for name in _PAIRS if name in part},
        **_take_details(part, positions),
    }


def _take_details(part: Content, positions: Positions) -> Content:
    """What events need to know about last rows, as far as the state has it."""
    ordinals = part.get("ordinals")
    taken = take_carried(part, positions, len(part["keys"]))
    return taken | ({} if ordinals is None else {"ordinals": ordinals[positions]})


def _join_details(parts: Sequence[Content], lengths: Sequence[int]) -> Content:
    joined = join_carried(parts, lengths)
    if any(part.get("ordinals") is not None for part in parts):
        ordinals = [part.get("ordinals", np.zeros(n, np.int64)) for part, n in zip(parts, lengths, strict=True)]
        joined["ordinals"] = np.concatenate(ordinals)
    return joined


def _pairs_of(part: Content, name: str) -> list[Any]:
    if name in part:
        return with_ordinals(part[name])
    none = np.zeros(0, np.int32)
    return [none, part["keys"][:0], part["times"][:0], none.astype(np.int8), none.astype(np.int64)]


def with_ordinals(pairs: Sequence[Any]) -> list[Any]:
    """The columns of pairs. States of earlier versions have no ordinals, which are 0."""
    return [*pairs, np.zeros(len(pairs[0]), np.int64)] if len(pairs) == 4 else list(pairs)


def _take_pairs(pairs: list[Any], moved: Any) -> list[Any]:
    keys, *columns = with_ordinals(pairs)
    check_within(keys, 0, len(moved) - 1, "the keys of pairs")
    kept = np.flatnonzero(moved[keys] >= 0)
    return [moved[keys[kept]], *(take(column, kept) for column in columns)]


def _join(parts: Sequence[Content]) -> Content:
    lengths = [len(part["keys"]) for part in parts]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    names = dict.fromkeys(name for part in parts for name in part["rows"])
    return {
        "is_whole": True,
        "keys": concat([part["keys"] for part in parts]),
        "freed": [],
        "times": concat([part["times"] for part in parts]),
        "versions": concat([part["versions"] for part in parts]),
        "deadlines": _join_deadlines(parts, lengths),
        "silent": _join_silent(parts, lengths),
        "rows": {name: concat_columns([part["rows"].get(name) for part in parts], lengths) for name in names},
        **{name: _join_pairs([_pairs_of(part, name) for part in parts], starts) for name in _PAIRS},
        **_join_details(parts, lengths),
    }


def _join_deadlines(parts: Sequence[Content], lengths: Sequence[int]) -> list[Any] | None:
    saved = [part.get("deadlines") for part in parts]
    if all(each is None for each in saved):
        return None
    filled = [no_deadlines(n) if each is None else each for each, n in zip(saved, lengths, strict=True)]
    return [concat(list(columns)) for columns in zip(*filled, strict=True)]


def _join_silent(parts: Sequence[Content], lengths: Sequence[int]) -> list[Any] | None:
    saved = [part.get("silent") for part in parts]
    if all(each is None for each in saved):
        return None
    filled = [
        each if each is not None else [np.full(n, value, part["times"].dtype) for value in NOT_SILENT]
        for each, n, part in zip(saved, lengths, parts, strict=True)
    ]
    return [concat(list(columns)) for columns in zip(*filled, strict=True)]


def _join_pairs(pairs: Sequence[list[Any]], starts: Any) -> list[Any]:
    keys = [each[0] + start for each, start in zip(pairs, starts, strict=False)]
    return [concat(keys).astype(np.int32), *(concat([each[place] for each in pairs]) for place in range(1, 5))]
