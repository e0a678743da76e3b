"""Join conditions in pieces: a diagonal, a band or a triangle of the plane of two join attributes as a few boxes.

Lim et al., section 6 (figure 14), after the object decomposition of Kriegel et al. The bounding box of a condition is
the whole plane, which excludes nothing. So the plane is cut along the attribute of the first stream, and each piece has
its own box. The paper's attributes are in [0, 1]; here the cuts are quantiles of the current rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.boxes import CLOSED, OPEN, UNBOUNDED, Ranges
from vedette.data.columns import Column
from vedette.native.ordering import GREATEST, LEAST
from vedette.operators.window_join.probes import DOUBLES, SIGN
from vedette.papers.duality.window_joins.link_ranges import to_ranges

_ROUNDING = 1e-15  # more than the rounding error of a difference of doubles, relative to its operands


def choose_cuts(values: Column, n_pieces: int) -> NDArray[Any]:
    """The values that divide others into pieces of about equal size."""
    known = values.values if values.valid is None else values.take(np.flatnonzero(values.valid)).values
    if not isinstance(known, np.ndarray):
        known = np.array(sorted(known.to_pylist(), key=str.encode), object)
    elif known.dtype != np.float64:
        known = known.astype(np.int64)
    ordered = known if known.dtype == object else np.sort(known)
    places = [len(ordered) * piece // n_pieces for piece in range(1, n_pieces)] if len(ordered) else []
    cuts = [ordered[place] for place in places]
    distinct = [cut for place, cut in enumerate(cuts) if place == 0 or _differ(cuts[place - 1], cut)]
    return np.array(distinct, ordered.dtype)


def decompose(
    kind: int, lows: NDArray[np.int64], highs: NDArray[np.int64], cuts: NDArray[Any]
) -> tuple[Ranges, Ranges]:
    """The pieces of conditions as ranges of the first and of the second attribute, piece after piece.

    A condition is a closed range of keys of the link's value. A value of the first attribute is in exactly one piece;
    the range of the second attribute includes all values that join with it.
    """
    n, n_pieces = len(lows), len(cuts) + 1
    none = cuts[:1] if len(cuts) else np.zeros(1, cuts.dtype)
    begins, ends = np.concatenate([none, cuts]).repeat(n), np.concatenate([cuts, none]).repeat(n)
    begin_ends, end_ends = np.full(n * n_pieces, OPEN, np.int8), np.full(n * n_pieces, CLOSED, np.int8)
    begin_ends[:n], end_ends[n * (n_pieces - 1) :] = UNBOUNDED, UNBOUNDED
    pieces = Ranges(begins, ends, begin_ends, end_ends)
    find = _compared if kind == SIGN else _subtracted_doubles if kind == DOUBLES else _subtracted_integers
    return pieces, find(pieces, np.tile(lows, n_pieces), np.tile(highs, n_pieces))


def _compared(pieces: Ranges, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> Ranges:
    """The range of the second attribute for a condition on a sign: above the start of a piece, or up to its end."""
    low_ends = np.where(highs > 0, UNBOUNDED, pieces.low_ends)
    high_ends = np.where(lows < 0, UNBOUNDED, np.where(lows > 0, OPEN, CLOSED))
    high_ends = np.where(pieces.high_ends == UNBOUNDED, UNBOUNDED, high_ends)
    return Ranges(pieces.lows, pieces.highs, low_ends.astype(np.int8), high_ends.astype(np.int8))


def _subtracted_integers(pieces: Ranges, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> Ranges:
    """From the start minus the highest difference to the end minus the lowest."""
    return Ranges(
        _minus(pieces.lows, highs),
        _minus(pieces.highs, lows),
        _ends((pieces.low_ends == UNBOUNDED) | (highs == GREATEST)),
        _ends((pieces.high_ends == UNBOUNDED) | (lows == LEAST)),
    )


def _subtracted_doubles(pieces: Ranges, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> Ranges:
    """The same, widened by rounding errors. A NaN of the second attribute counts as the least value.

    A difference with it is NaN, as the highest differences are; then there is no lower end.
    """
    asked = to_ranges(lows, highs, is_double=True)
    with np.errstate(invalid="ignore", over="ignore"):
        least = pieces.lows - asked.highs - _ROUNDING * (np.abs(pieces.lows) + np.abs(asked.highs))
        most = pieces.highs - asked.lows + _ROUNDING * (np.abs(pieces.highs) + np.abs(asked.lows))
    low_open = (pieces.low_ends == UNBOUNDED) | (asked.high_ends == UNBOUNDED) | ~np.isfinite(least)
    high_open = (pieces.high_ends == UNBOUNDED) | (asked.low_ends == UNBOUNDED) | ~np.isfinite(most)
    return Ranges(np.where(low_open, 0.0, least), np.where(high_open, 0.0, most), _ends(low_open), _ends(high_open))


def _minus(firsts: NDArray[np.int64], seconds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Differences, clipped to 64 bits."""
    differences = firsts - seconds
    is_beyond = (firsts ^ seconds) & (firsts ^ differences) < 0
    return np.where(is_beyond, np.where(firsts < 0, LEAST, GREATEST), differences)


def _ends(is_unbounded: NDArray[np.bool_]) -> NDArray[np.int8]:
    return np.where(is_unbounded, UNBOUNDED, CLOSED).astype(np.int8)


def _differ(one: Any, other: Any) -> bool:
    return bool(one != other) and not (one != one and other != other)
