"""The state of a moving join as bytes: all of it, or what has changed since.

Only objects are in it. When a pair meets follows from its two motions, to the last bit, so pairs are found anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.errors import SnapshotError
from vedette.native.damage import check, check_shape, check_type
from vedette.operators.moving_join.motion_rows import SIDES, TIME, UNTIL
from vedette.operators.moving_join.moving_set import MovingSet
from vedette.operators.moving_join.rows import FARTHEST
from vedette.operators.state_checks import check_count, check_distinct_ids
from vedette.queries import snapshot

if TYPE_CHECKING:
    from vedette.operators.moving_join.moving_join import MovingJoin

_KIND = "moving join state"
_NAME, _ANEW = f"the saved {_KIND}", snapshot.start_anew(_KIND)


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
    with snapshot.refusing_damage(_NAME, _ANEW):
        _apply(moving, content)


def apply_delta(moving: MovingJoin, blob: bytes) -> None:
    content = _check(moving, blob)
    with snapshot.refusing_damage(_NAME, _ANEW):
        _apply(moving, content)


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
        "static": moving.static,
    }


def _check(moving: MovingJoin, blob: bytes) -> dict[str, Any]:
    content = snapshot.from_bytes(blob, _KIND)
    if snapshot.kind_of(content) != _KIND:
        raise SnapshotError("the bytes are no state of a moving join; give it what `save` returned")
    with snapshot.refusing_damage(_NAME, _ANEW):
        _validate(moving, content)
    for name, value in _options(moving).items():
        if content["options"][name] != value:
            raise SnapshotError(
                f"the state was saved with {name}={content['options'][name]!r}, and here it is {value!r}; "
                f"make the join with the options of the one that was saved"
            )
    return content


def _validate(moving: MovingJoin, content: dict[str, Any]) -> None:
    """Raise DamageError unless content from outside is what `_to_bytes` makes."""
    n_dims, sets, join = content["n_dims"], content["sets"], moving.join
    check(isinstance(content["options"], dict) and content["options"].keys() >= _options(moving).keys(), "no options")
    check_type(content["options"], dict[str, str | bool | int | float | None], "the options of a state")
    check(n_dims is None or type(n_dims) is int, "a state has no such dimensions")
    check(n_dims in (None, 2, 3), "a state has no such dimensions")
    if n_dims is None:
        check(sets == [], "objects have no dimensions")
        return
    check_type(content["now"], float, "the time of a state")
    check(abs(content["now"]) <= FARTHEST, "the time of a state is not finite")
    check(len(sets) == 2 and len(content["rates"]) == 2, "a set of a state is missing")
    is_all = all(saved["is_all"] is True for saved in sets)
    check(is_all or join is None or join.a.n_dims == n_dims, "a delta has other dimensions")
    for number, (saved, (n_voluntary, n_forced, waited)) in enumerate(zip(sets, content["rates"], strict=True)):
        check_count(n_voluntary, "a count of a state")
        check_count(n_forced, "a count of a state")
        check_type(waited, float, "a count of a state")
        check(np.isfinite(waited) and waited >= 0.0, "a count of a state is not finite")
        check_type(saved["is_all"], bool, "whether a state is a delta")
        known = None if is_all or join is None else join.sets[number].ids
        n = check_distinct_ids(saved["ids"], known, "the ids of a state")
        rows = saved["rows"]
        check_type(rows, NDArray[np.float64], "the objects of a state")
        check_shape(rows, (n, SIDES + 4 * n_dims), "the objects of a state")
        others = np.delete(rows, UNTIL, axis=1)
        check((np.abs(others) <= FARTHEST).all() and not np.isnan(rows).any(), "an object of a state is not finite")
        lows, highs = rows[:, SIDES::4], rows[:, SIDES + 1 :: 4]
        check((lows <= highs).all() and (rows[:, UNTIL] >= rows[:, TIME]).all(), "an object ends before it begins")
        if saved["is_all"]:
            check(saved["freed"] is None, "a state frees what it has")
        else:
            check_distinct_ids(saved["freed"], known, "the freed ids of a state")


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
