"""The comparison that all band joins use, and the shifts for which it is true.

A left value r and a right value s are in a band [a, b] if a <= r - s <= b, with the difference rounded to a double.
Comparing r with s + a instead differs on about 88 of a million pairs of three-decimal values. So every structure here
holds left values as they are and right values negated, is given the other value, negated if right, as a *shift*, and
compares `x + shift` with the ends of bands: that is r - s, rounded once, whichever side is held. Rounding keeps order,
so for one shift the values within a band are neighbours, and for one value so are the shifts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel


@kernel
def least_shift(value: float, bound: float) -> float:
    """The least double that, added to the value and rounded, is at least the bound; infinity where none is.

    It is not `bound - value`: where the shift is small beside the value, very many shifts round to one sum.
    """
    shift = np.nextafter(bound, -np.inf) - value  # the sum must exceed the double below, so it cannot be less
    if value + shift >= bound:
        return shift  # type: ignore[no-any-return]
    below, enough = _rank(shift), _rank(np.nextafter(bound - value, np.inf))
    while enough > below + 1:
        middle = (below >> 1) + (enough >> 1) + (below & enough & 1)  # their sum may not fit
        if value + _unrank(middle) >= bound:
            enough = middle
        else:
            below = middle
    return _unrank(enough)


@kernel
def greatest_shift(value: float, bound: float) -> float:
    """The greatest double that, added to the value and rounded, is at most the bound; minus infinity where none is."""
    return -least_shift(-value, -bound)


@kernel
def spans_of_shifts(
    values: NDArray[np.float64], lows: NDArray[np.float64], highs: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """By value and band, the least and the greatest shift that bring the value into the band."""
    firsts, lasts = np.empty((len(values), len(lows))), np.empty((len(values), len(lows)))
    for i in range(len(values)):
        for j in range(len(lows)):
            firsts[i, j] = least_shift(values[i], lows[j])
            lasts[i, j] = greatest_shift(values[i], highs[j])
    return firsts, lasts


LOWEST = -0x8000000000000000  # the bits of minus zero, as an integer


@kernel
def _rank(number: float) -> int:
    """Integers in the order of doubles."""
    bits = np.float64(number).view(np.int64)
    return bits if bits >= 0 else LOWEST - bits  # type: ignore[return-value]


@kernel
def _unrank(rank: int) -> float:
    bits = np.int64(LOWEST - rank if rank < 0 else rank)
    return bits.view(np.float64)
