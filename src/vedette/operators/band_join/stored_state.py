"""Band join states as plain content: the values of both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vedette.operators.carried_state import join_carried, take_carried
from vedette.operators.state import Content
from vedette.operators.stored_state import (
    Choose,
    Positions,
    StoredState,
    check_same,
    concat,
    is_among,
    take,
)


class StoredBands(StoredState):
    kind = "band join state"

    def merge(self, content: Content, delta: Content) -> Content:
        parts = {}
        for name, new in delta["parts"].items():
            old = content["parts"][name]
            if not new["is_whole"]:
                kept = np.flatnonzero(~is_among(old["ids"], concat([new["ids"], new["freed"]])))
                new = _join([_take(old, kept), new])
            parts[name] = new
        return delta | {"parts": parts}

    def pick(self, content: Content, choose: Choose) -> Content:
        parts = {name: _take(part, choose(name, part["ids"])) for name, part in content["parts"].items()}
        return content | {"parts": parts}

    def without_counts(self, content: Content) -> Content:
        return content | {"n_unknown": 0}

    def unite(self, contents: Sequence[Content]) -> Content:
        """All shards have reported the same changes of queries."""
        check_same(contents, "history")
        names = contents[0]["parts"]
        return contents[0] | {
            "n_unknown": sum(each["n_unknown"] for each in contents),
            "parts": {name: _join([each["parts"][name] for each in contents]) for name in names},
        }


def _take(part: Content, positions: Positions) -> Content:
    return {
        "is_whole": True,
        "ids": take(part["ids"], positions),
        "freed": None,
        "values": part["values"][positions],
        **take_carried(part, positions, len(part["ids"])),
    }


def _join(parts: Sequence[Content]) -> Content:
    return {
        "is_whole": True,
        "ids": concat([part["ids"] for part in parts]),
        "freed": None,
        "values": concat([part["values"] for part in parts]),
        **join_carried(parts, [len(part["ids"]) for part in parts]),
    }
