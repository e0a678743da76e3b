"""Probes: from a row of one stream to the rows of another that join with it, as runs of an ordered list.

The value of a link falls or rises along a list that is in the order of one side, so what lies in a range of values is a
run, found by halving with the very comparison that the query makes: nothing is rounded twice. NaN and infinite values
break that order; where they may, the run is all that has the code, and every row of it is compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.kernels import kernel
from vedette.ordering import GREATEST, LEAST, NAN_KEY, double_of_key, key_of_double

NO_LINK, SIGN, DOUBLES, INTEGERS = 0, 1, 2, 3  # how the value of a link is computed from two keys

_LEAST_INFINITE, _GREATEST_INFINITE = -0x7FF0000000000001, 0x7FF0000000000000  # the keys of both infinities


@kernel
def link_value(kind: int, first: int, second: int) -> int:
    """The value of a link as a key: a sign, or a difference; one beyond 64 bits is moved to the end it is beyond."""
    if kind == SIGN:
        return int(first > second) - int(first < second)
    if kind == DOUBLES:
        return key_of_double(double_of_key(first) - double_of_key(second))
    if kind == INTEGERS:
        difference = first - second
        if (first ^ second) & (first ^ difference) < 0:
            return LEAST if first < 0 else GREATEST
        return difference
    return 0


@kernel
def holds(kind: int, first: int, second: int, low: int, high: int) -> bool:
    """Whether the value of a link is in a range; a difference beyond 64 bits is in none."""
    if kind == INTEGERS:
        difference = first - second
        if (first ^ second) & (first ^ difference) < 0:
            return False
    return low <= link_value(kind, first, second) <= high


@kernel
def find_runs(
    branches: NDArray[np.int32],
    codes: NDArray[np.int32],
    keys: NDArray[np.int64],
    kind: int,
    is_first: bool,
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    lists: NDArray[np.int32],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int32],
    list_codes: NDArray[np.int32],
    list_keys: NDArray[np.int64],
    runs: NDArray[np.int64],
    run_lengths: NDArray[np.int32],
) -> int:
    """For each probe, a branch with a code and a key, the run of that branch's list; how many rows the runs have.

    `is_first` tells whether the probe's key is the first of the two that are compared. A run whose rows have yet to be
    compared has its length below 0.
    """
    total = 0
    for i in range(len(branches)):
        branch = branches[i]
        one = lists[branch]
        begin, end = starts[one], starts[one] + lengths[one]
        runs[i], run_lengths[i] = begin, 0
        if codes[i] < 0 or begin == end:
            continue
        if len(list_codes):
            begin = _first_code(list_codes, begin, end, codes[i])
            end = _first_code(list_codes, begin, end, codes[i] + 1)
            if begin == end:
                continue
        key, low, high = keys[i], lows[branch], highs[branch]
        if kind == NO_LINK:
            pass
        elif kind == DOUBLES and (
            not _LEAST_INFINITE < key < _GREATEST_INFINITE or (list_keys[end - 1] == NAN_KEY and high >= NAN_KEY)
        ):
            runs[i], run_lengths[i] = begin, begin - end
            total += end - begin
            continue
        else:
            if kind == DOUBLES:
                while end > begin and list_keys[end - 1] == NAN_KEY:
                    end -= 1
            if is_first:  # values fall along the list
                begin = _first_at_most(list_keys, begin, end, kind, key, high)
                end = _first_below(list_keys, begin, end, kind, key, low)
            else:
                begin = _first_at_least(list_keys, begin, end, kind, key, low)
                end = _first_above(list_keys, begin, end, kind, key, high)
            if kind == INTEGERS and end > begin and _may_overflow(key, list_keys[begin], list_keys[end - 1]):
                runs[i], run_lengths[i] = begin, begin - end
                total += end - begin
                continue
        runs[i], run_lengths[i] = begin, end - begin
        total += end - begin
    return total


@kernel
def take_runs(
    branches: NDArray[np.int32],
    keys: NDArray[np.int64],
    limits: NDArray[np.int64],
    latest: NDArray[np.int64],
    runs: NDArray[np.int64],
    run_lengths: NDArray[np.int32],
    first: int,
    last: int,
    kind: int,
    is_first: bool,
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
    list_keys: NDArray[np.int64],
    list_rows: NDArray[np.int32],
    times: NDArray[np.int64],
    shift: int,
    counts: bool,
    windows: NDArray[np.int64],
    own_windows: NDArray[np.int64],
    probes: NDArray[np.int32],
    rows: NDArray[np.int32],
) -> int:
    """The rows of the runs of probes `first` to `last` that are in the windows, each with its probe; how many.

    `limits` are the rows that came before the one that probes, `latest` the time of the latest so far. A window counts
    rows back from the limit, or time back from the latest; a row that is later still must not be so by more than
    `own_windows`, which are empty where that is no condition. Rows below `shift` are gone.
    """
    n = 0
    for i in range(first, last):
        branch = branches[i]
        run, length = runs[i], run_lengths[i]
        limit, time = limits[i], latest[i]
        window = windows[branch]
        if length < 0:
            key, low, high = keys[i], lows[branch], highs[branch]
            for at in range(run, run - length):
                other = list_keys[at]
                a, b = (key, other) if is_first else (other, key)
                row = list_rows[at]
                if shift <= row < limit and holds(kind, a, b, low, high):
                    is_in = limit - row <= window if counts else time - times[row - shift] <= window
                    if is_in and len(own_windows):
                        is_in = times[row - shift] - time <= own_windows[branch]
                    if is_in:
                        probes[n], rows[n] = i, row
                        n += 1
        elif counts:
            least = max(shift, limit - np.int64(window))
            for at in range(run, run + length):
                row = list_rows[at]
                probes[n], rows[n] = i, row
                n += least <= row < limit and (
                    len(own_windows) == 0 or times[row - shift] - time <= own_windows[branch]
                )
        elif len(own_windows):
            own = own_windows[branch]
            for at in range(run, run + length):
                row = list_rows[at]
                if shift <= row < limit:
                    age = time - times[row - shift]
                    probes[n], rows[n] = i, row
                    n += -own <= age <= window
        else:
            for at in range(run, run + length):
                row = list_rows[at]
                if shift <= row < limit:
                    probes[n], rows[n] = i, row
                    n += time - times[row - shift] <= window
    return n


@kernel
def _may_overflow(key: int, least: int, greatest: int) -> bool:
    half = 1 << 62
    return not (-half < key < half and -half < least and greatest < half)


@kernel
def _first_code(codes: NDArray[np.int32], begin: int, end: int, code: int) -> int:
    """The first place from whose code on none is below."""
    while begin < end:
        middle = (begin + end) >> 1
        if codes[middle] < code:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def _first_at_most(keys: NDArray[np.int64], begin: int, end: int, kind: int, key: int, high: int) -> int:
    while begin < end:
        middle = (begin + end) >> 1
        if link_value(kind, key, keys[middle]) <= high:
            end = middle
        else:
            begin = middle + 1
    return begin


@kernel
def _first_below(keys: NDArray[np.int64], begin: int, end: int, kind: int, key: int, low: int) -> int:
    while begin < end:
        middle = (begin + end) >> 1
        if link_value(kind, key, keys[middle]) < low:
            end = middle
        else:
            begin = middle + 1
    return begin


@kernel
def _first_at_least(keys: NDArray[np.int64], begin: int, end: int, kind: int, key: int, low: int) -> int:
    while begin < end:
        middle = (begin + end) >> 1
        if link_value(kind, keys[middle], key) >= low:
            end = middle
        else:
            begin = middle + 1
    return begin


@kernel
def _first_above(keys: NDArray[np.int64], begin: int, end: int, kind: int, key: int, high: int) -> int:
    while begin < end:
        middle = (begin + end) >> 1
        if link_value(kind, keys[middle], key) > high:
            end = middle
        else:
            begin = middle + 1
    return begin
