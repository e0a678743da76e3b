"""The state of a band join as bytes: all of it, or what has changed since.

Values stand there by their owners' ids, so that a state fits every later version of the set whose changes are still
known. It does not fit another set: a checksum of the set's history tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.ids import Ids
from vedette.errors import SnapshotError
from vedette.native.damage import check, check_shape, check_type
from vedette.operators.band_join.rows import SIDES
from vedette.operators.band_join.side import Side
from vedette.operators.state_checks import check_count, check_distinct_ids, check_history
from vedette.queries import snapshot

if TYPE_CHECKING:
    from vedette.operators.band_join.monitor import BandMonitor

_KIND = "band join state"
_NAME, _ANEW = f"the saved {_KIND}", snapshot.start_anew(_KIND)


def save(monitor: BandMonitor) -> bytes:
    sides = {}
    for side in (monitor.left, monitor.right):
        side.begin_log()
        sides[SIDES[side.sign]] = _all_of(side)
    return _to_bytes(monitor, sides)


def take_delta(monitor: BandMonitor) -> bytes:
    sides = {}
    for side in (monitor.left, monitor.right):
        log = side.take_log()
        sides[SIDES[side.sign]] = _all_of(side) if log is None else _some_of(side, *log)
    return _to_bytes(monitor, sides)


def load(monitor: BandMonitor, blob: bytes) -> None:
    content = _check(monitor, blob)
    if not all(content["sides"][name]["is_all"] for name in SIDES.values()):
        raise SnapshotError("the bytes are what has changed in a state, not a state; load one, then use apply_delta")
    with snapshot.refusing_damage(_NAME, _ANEW):
        monitor.clear()
        _apply(monitor, content)


def apply_delta(monitor: BandMonitor, blob: bytes) -> None:
    content = _check(monitor, blob, is_delta=True)
    with snapshot.refusing_damage(_NAME, _ANEW):
        _apply(monitor, content)


def _all_of(side: Side) -> dict[str, Any]:
    living = np.flatnonzero(side.lives[: len(side.ids)]).astype(np.int32)
    return {"is_all": True, **_values_of(side, living), "freed": None}


def _some_of(side: Side, put: NDArray[np.int32], freed: NDArray[np.int32]) -> dict[str, Any]:
    return {"is_all": False, **_values_of(side, put), "freed": side.ids.take(freed)}


def _values_of(side: Side, slots: NDArray[np.int32]) -> dict[str, Any]:
    return {"ids": side.ids.take(slots), "values": side.values[slots]}


def _to_bytes(monitor: BandMonitor, sides: dict[str, Any]) -> bytes:
    return snapshot.to_bytes(
        {
            "kind": _KIND,
            "history": [monitor.version, monitor.queries.history_mark(monitor.version)],
            "n_unknown": monitor.n_unknown,
            "sides": sides,
        }
    )


def _check(monitor: BandMonitor, blob: bytes, *, is_delta: bool = False) -> dict[str, Any]:
    content = snapshot.from_bytes(blob, _KIND)
    if snapshot.kind_of(content) != _KIND:
        raise SnapshotError("the bytes are no state of a band join; give it what `save` returned")
    with snapshot.refusing_damage(_NAME, _ANEW):
        check_history(content["history"])
        check_count(content["n_unknown"], "a count of a state")
        for side in (monitor.left, monitor.right):
            _validate(content["sides"][SIDES[side.sign]], side.ids if is_delta else None)
    queries = monitor.queries
    version, mark = content["history"]
    if version > queries.version:
        raise SnapshotError(
            f"the state was saved at version {version} of the queries, which are at version {queries.version} here; "
            f"load the set that was saved with it"
        )
    if queries.history_mark(version) not in (None, mark):  # none where a registry has forgotten it
        raise SnapshotError(
            "the state was saved with another set of queries, whose changes were not the same; load the set that was "
            "saved with it, or begin without a state"
        )
    if version < queries.oldest_version and monitor.report == "pairs":
        raise SnapshotError(
            f"the state was saved at version {version} of the queries; what has changed since is known from version "
            f"{queries.oldest_version} on only: save states more often, or begin without one"
        )
    return content


def _validate(saved: dict[str, Any], known: Ids | None) -> None:
    """Raise DamageError unless what came from outside is a side of a state."""
    check_type(saved["is_all"], bool, "whether a state is a delta")
    n = check_distinct_ids(saved["ids"], known, "the ids of a state")
    check_type(saved["values"], NDArray[np.float64], "the values of a state")
    check_shape(saved["values"], (n,), "the values of a state")
    check(np.isfinite(saved["values"]).all(), "a value of a state is not finite")
    if saved["is_all"]:
        check(saved["freed"] is None, "a state frees what it has")
    else:
        check_distinct_ids(saved["freed"], known, "the freed ids of a state")


def _apply(monitor: BandMonitor, content: dict[str, Any]) -> None:
    for side in (monitor.left, monitor.right):
        saved = content["sides"][SIDES[side.sign]]
        if saved["is_all"]:
            side.free(np.flatnonzero(side.lives[: len(side.ids)]).astype(np.int32))
        elif len(saved["freed"]):
            _free_ids(side, saved["freed"])
        if len(saved["ids"]):
            _free_ids(side, saved["ids"])
            side.put(saved["ids"], saved["values"], side.slots_for(saved["ids"]))
        side.begin_log()
    monitor.version = content["history"][0]
    monitor.n_unknown = content["n_unknown"]


def _free_ids(side: Side, ids: Any) -> None:
    slots = side.find(ids)
    side.free(slots[slots >= 0])
