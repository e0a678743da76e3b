"""The state of a moving join as bytes: all of it, or what has changed since.

Only objects are in it. When a pair meets follows from its two motions, to the last bit, so pairs are found anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.engine import snapshot
from vedette.errors import SnapshotError
from vedette.operators.moving.moving_set import MovingSet

if TYPE_CHECKING:
    from vedette.engine.moving_join import MovingJoin

_KIND = "moving join state"


def save(moving: MovingJoin) -> bytes:
    sets = []
    for of in () if moving.join is None else moving.join.sets:
        of.begin_log()
        sets.append(_all_of(of))
    return _to_bytes(moving, sets)


def take_delta(moving: MovingJoin) -> bytes:
    sets = []
    for of in () if moving.join is None else moving.join.sets:
        log = of.take_log()
        sets.append(_all_of(of) if log is None else _some_of(of, *log))
    return _to_bytes(moving, sets)


def load(moving: MovingJoin, blob: bytes) -> None:
    content = _check(moving, blob)
    if not all(each["is_all"] for each in content["sets"]):
        raise SnapshotError("the bytes are what has changed in a state, not a state; load one, then use apply_delta")
    _apply(moving, content)


def apply_delta(moving: MovingJoin, blob: bytes) -> None:
    _apply(moving, _check(moving, blob))


def _all_of(of: MovingSet) -> dict[str, Any]:
    living = of.living
    return {"is_all": True, "ids": of.ids.take(living), "rows": of.rows[living], "freed": None}


def _some_of(of: MovingSet, put: NDArray[np.int32], freed: NDArray[np.int32]) -> dict[str, Any]:
    return {"is_all": False, "ids": of.ids.take(put), "rows": of.rows[put], "freed": of.ids.take(freed)}


def _to_bytes(moving: MovingJoin, sets: list[dict[str, Any]]) -> bytes:
    join = moving.join
    return snapshot.to_bytes(
        {
            "kind": _KIND,
            "options": _options(moving),
            "n_dims": None if join is None else join.a.n_dims,
            "now": None if join is None else join.now,
            "rates": None if join is None else [list(rates.to_numbers()) for rates in join.rates],
            "sets": sets,
        }
    )


def _options(moving: MovingJoin) -> dict[str, Any]:
    return {
        "max_update_interval": moving.max_update_interval,
        "expire_overdue": moving.expire_overdue,
        "standing": moving.standing,
    }


def _check(moving: MovingJoin, blob: bytes) -> dict[str, Any]:
    content = snapshot.from_bytes(blob, _KIND)
    if content.get("kind") != _KIND:
        raise SnapshotError("the bytes are no state of a moving join; give it what `save` returned")
    for name, value in _options(moving).items():
        if content["options"][name] != value:
            raise SnapshotError(
                f"the state was saved with {name}={content['options'][name]!r}, and here it is {value!r}; "
                f"make the join with the options of the one that was saved"
            )
    return content


def _apply(moving: MovingJoin, content: dict[str, Any]) -> None:
    if all(each["is_all"] for each in content["sets"]):
        moving.clear()  # dimensions and the kinds of ids may be others
    if content["n_dims"] is None:
        return
    join = moving.begin_unstarted(content["n_dims"], content["now"])
    for of, rates, saved, numbers in zip(join.sets, join.rates, content["sets"], content["rates"], strict=True):
        if saved["is_all"]:
            of.free(of.living)
        elif len(saved["freed"]):
            slots = of.find(saved["freed"])
            of.free(slots[slots >= 0])
        if len(saved["ids"]):
            of.restore(saved["ids"], saved["rows"])
        of.pack()
        of.begin_log()
        rates.set_numbers(*numbers)
