"""Moving join states as plain content: the objects of both sets, and when removed ones were last seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vedette.errors import SnapshotError
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

_OBJECTS, _REMOVED = ("ids", "rows", "reported"), ("removed", "removed_reported")


class StoredMoving(StoredState):
    kind = "moving join state"

    def merge(self, content: Content, delta: Content) -> Content:
        parts = {}
        for name, new in delta["parts"].items():
            old = content["parts"].get(name)
            if old is not None and not new["is_whole"]:
                kept = ~is_among(old["ids"], concat([new["ids"], new["freed"], new["removed"]]))
                still_removed = ~is_among(old["removed"], concat([new["ids"], new["removed"]]))
                new = _join([_take(old, np.flatnonzero(kept), np.flatnonzero(still_removed)), new])
            parts[name] = new
        return delta | {"parts": parts}

    def pick(self, content: Content, choose: Choose) -> Content:
        parts = {
            name: _take(part, choose(name, part["ids"]), choose(name, part["removed"]))
            for name, part in content["parts"].items()
        }
        return content | {"parts": parts}

    def without_counts(self, content: Content) -> Content:
        return content | {"n_late": 0}

    def unite(self, contents: Sequence[Content]) -> Content:
        """All shards step at the same times. How often objects update is counted again from 0."""
        if any(each["waiting"] is not None for each in contents):
            raise SnapshotError("rows without a time wait for the first one; run a micro-batch with rows first")
        n_late = sum(each["n_late"] for each in contents)
        begun = [each for each in contents if each["n_dims"] is not None]
        if not begun:
            return contents[0] | {"n_late": n_late}
        for name in ("n_dims", "now"):
            check_same(begun, name)
        return begun[0] | {
            "n_late": n_late,
            "rates": [[0, 0, 0.0], [0, 0, 0.0]],
            "parts": {name: _join([each["parts"][name] for each in begun]) for name in begun[0]["parts"]},
        }


def _take(part: Content, objects: Positions, removed: Positions) -> Content:
    taken = {name: take(part[name], objects) for name in _OBJECTS}
    taken |= take_carried(part, objects, len(part["ids"]))
    return {"is_whole": True, "freed": None} | taken | {name: take(part[name], removed) for name in _REMOVED}


def _join(parts: Sequence[Content]) -> Content:
    joined = {name: concat([part[name] for part in parts]) for name in (*_OBJECTS, *_REMOVED)}
    joined |= join_carried(parts, [len(part["ids"]) for part in parts])
    return {"is_whole": True, "freed": None} | joined
