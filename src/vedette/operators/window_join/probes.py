"""Probes: from a row of one stream to the rows of another that join with it, as runs of an ordered list.

The value of a link is monotone along a list that is ordered by one side, so the rows in a range of values are a run. It
is found by binary search with the same comparison as in the query, so nothing is rounded twice. NaN and infinite values
break that order; if they occur, the run is all rows with the code, and each row is compared.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel
from vedette.native.ordering import (
    GREATEST,
    GREATEST_INFINITE,
    LEAST,
    LEAST_INFINITE,
    NAN_KEY,
    double_of_key,
    key_of_double,
)
from vedette.operators.window_join.ordered_lists import ListArrays

NO_LINK, SIGN, DOUBLES, INTEGERS = 0, 1, 2, 3  # how the value of a link is computed from two keys


class Probes(NamedTuple):
    """Probing rows: the branch, the place of the row among kept rows, and its place among new rows."""

    branches: NDArray[np.int32]
    places: NDArray[np.int32]
    arrivals: NDArray[np.int32]


class RowKeyArrays(NamedTuple):
    """The codes and keys of the rows of a stream, by place."""

    codes: NDArray[np.int32]
    keys: NDArray[np.int64]


class LinkRanges(NamedTuple):
    """The range of a link's value by branch. `is_first`: the key of the probe is the first of the two."""

    kind: int
    is_first: bool
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]


class Runs(NamedTuple):
    """By probe, the entries of a list that may join. A length below 0 means that they must still be compared."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int32]


class Before(NamedTuple):
    """The rows before a new row.

    `limits` are the numbers of rows before each arrival; `latest` is the time of the latest row so far, by arrival or
    by probe.
    """

    limits: NDArray[np.int64]
    latest: NDArray[Any]
    by_arrival: bool


class Reach(NamedTuple):
    """The rows of a stream that a probe may join with, and the windows by branch.

    A window counts rows back from the limit, or time back from the latest row. A row that is later than the probe must
    not be later by more than `own_windows`, which is empty if that is no condition. Rows below `shift` were dropped.
    """

    times: NDArray[Any]  # by row minus `shift`
    shift: int
    counts: bool
    windows: NDArray[Any]
    own_windows: NDArray[Any]


class Taken(NamedTuple):
    """The output: rows minus `base` are written to `rows[n:]`, and the number of rows of each probe to `counts`."""

    base: int
    counts: NDArray[np.int32]
    rows: NDArray[np.int32]
    n: int


@kernel
def link_value(kind: int, first: int, second: int) -> int:
    """The value of a link as a key: a sign, or a difference. A difference beyond 64 bits is clamped."""
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
def is_in_range(kind: int, first: int, second: int, low: int, high: int) -> bool:
    """Whether the value of a link is in a range. A difference beyond 64 bits is in no range."""
    if kind == INTEGERS:
        difference = first - second
        if (first ^ second) & (first ^ difference) < 0:
            return False
    return low <= link_value(kind, first, second) <= high


@kernel
def find_runs(
    probes: Probes, rows: RowKeyArrays, link: LinkRanges, list_of: NDArray[np.int32], lists: ListArrays, runs: Runs
) -> None:
    """Find the run of each probe in its branch's list. `list_of` is the list of each branch.

    A run whose rows must still be compared has a negative length. Probes of one branch are fastest in the order of
    their keys: each search starts where the previous one ended.
    """
    branches, places, codes, keys = probes.branches, probes.places, rows.codes, rows.keys
    kind, is_first, lows, highs = link.kind, link.is_first, link.lows, link.highs
    starts, lengths, list_codes, list_keys = lists.starts, lists.lengths, lists.codes, lists.keys
    run_starts, run_lengths = runs.starts, runs.lengths
    branch, code, key = -1, 0, 0
    block_begin = block_end = begin = end = 0
    for i in range(len(branches)):
        same = branches[i] == branch and codes[places[i]] == code and keys[places[i]] >= key
        branch, code, key = branches[i], codes[places[i]], keys[places[i]]
        if not same:
            one = list_of[branch]
            block_begin, block_end = starts[one], starts[one] + lengths[one]
            if code < 0:
                block_end = block_begin
            elif len(list_codes) and block_begin < block_end:
                block_begin = _first_code(list_codes, block_begin, block_end, code)
                block_end = _first_code(list_codes, block_begin, block_end, code + 1)
            begin = end = block_begin
        run_starts[i], run_lengths[i] = block_begin, 0
        if block_begin == block_end:
            continue
        if kind == NO_LINK:
            run_lengths[i] = block_end - block_begin
            continue
        low, high = lows[branch], highs[branch]
        last = block_end
        if kind == DOUBLES:
            has_nan = list_keys[block_end - 1] == NAN_KEY
            if not LEAST_INFINITE < key < GREATEST_INFINITE or (has_nan and high >= NAN_KEY):
                run_lengths[i] = block_begin - block_end
                begin = end = block_begin
                continue
            while has_nan and last > block_begin and list_keys[last - 1] == NAN_KEY:
                last -= 1
        into, out_of = (high, low) if is_first else (low, high)
        begin = _first_past(list_keys, begin, last, kind, key, is_first, into, True)
        end = _first_past(list_keys, max(begin, end), last, kind, key, is_first, out_of, False)
        run_starts[i], run_lengths[i] = begin, end - begin
        if kind == INTEGERS and end > begin and _may_overflow(key, list_keys[begin], list_keys[end - 1]):
            run_lengths[i] = begin - end


@kernel
def take_runs(
    probes: Probes,
    keys: NDArray[np.int64],
    before: Before,
    runs: Runs,
    link: LinkRanges,
    lists: ListArrays,
    reach: Reach,
    span: tuple[int, int],
    out: Taken,
) -> int:
    """Write the rows of the runs of probes `span[0]` to `span[1]` that are in the windows to `out`.

    Returns the number of rows in `out`.
    """
    branches, places, arrivals = probes.branches, probes.places, probes.arrivals
    limits, latest, by_arrival = before.limits, before.latest, before.by_arrival
    run_starts, run_lengths = runs.starts, runs.lengths
    kind, is_first, lows, highs = link.kind, link.is_first, link.lows, link.highs
    list_keys, list_rows = lists.keys, lists.rows
    times, shift, counts = reach.times, reach.shift, reach.counts
    windows, own_windows = reach.windows, reach.own_windows
    base, taken, rows, n = out.base, out.counts, out.rows, out.n
    first, last = span
    for i in range(first, last):
        branch, n_before = branches[i], n
        run, length = run_starts[i], run_lengths[i]
        limit = limits[arrivals[i]]
        time = latest[arrivals[i] if by_arrival else i]
        window = windows[branch]
        if length < 0:
            key, low, high = keys[places[i]], lows[branch], highs[branch]
            for at in range(run, run - length):
                other = list_keys[at]
                a, b = (key, other) if is_first else (other, key)
                row = list_rows[at]
                if shift <= row < limit and is_in_range(kind, a, b, low, high):
                    is_in = limit - row <= window if counts else time - times[row - shift] <= window
                    if is_in and len(own_windows):
                        is_in = times[row - shift] - time <= own_windows[branch]
                    if is_in:
                        rows[n] = row - base
                        n += 1
        elif counts and len(own_windows) == 0:
            least = max(shift, limit - np.int64(window))
            for at in range(run, run + length):  # without branches: a row that is not kept is overwritten
                row = list_rows[at]
                rows[n] = row - base
                n += (row >= least) & (row < limit)
        else:
            least = max(shift, limit - np.int64(window)) if counts else shift
            for at in range(run, run + length):
                row = list_rows[at]
                if least <= row < limit:
                    age = time - times[row - shift]
                    rows[n] = row - base
                    n += (counts or age <= window) and (len(own_windows) == 0 or -own_windows[branch] <= age)
        taken[i] = n - n_before
    return n


@kernel
def name_pairs(
    branches: NDArray[np.int32],
    queries: NDArray[np.int32],
    rows: NDArray[np.int32],
    base: int,
    taken: NDArray[np.int32],
    first: int,
    last: int,
    out_queries: NDArray[np.int32],
    out_rows: NDArray[np.int32],
    n: int,
) -> None:
    """Write the query and the row of each probe, once for each row that it joins with, from `n` on."""
    for i in range(first, last):
        query, row = queries[branches[i]], np.int32(rows[i] - base)
        for at in range(n, n + taken[i]):
            out_queries[at] = query
        for at in range(n, n + taken[i]):
            out_rows[at] = row
        n += taken[i]


@kernel
def _may_overflow(key: int, least: int, greatest: int) -> bool:
    half = 1 << 62
    return not (-half < key < half and -half < least and greatest < half)


@kernel
def _first_code(codes: NDArray[np.int32], begin: int, end: int, code: int) -> int:
    """The first place whose code is not below `code`."""
    while begin < end:
        middle = (begin + end) >> 1
        if codes[middle] < code:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def _first_past(
    keys: NDArray[np.int64], begin: int, end: int, kind: int, key: int, is_first: bool, bound: int, is_in: bool
) -> int:
    """The first place whose value is past the bound, or at it if `is_in`: exponential, then binary search."""
    step = 1
    while begin + step < end and not _is_past(keys[begin + step - 1], kind, key, is_first, bound, is_in):
        begin += step
        step *= 2
    end = min(end, begin + step)
    while begin < end:
        middle = (begin + end) >> 1
        if _is_past(keys[middle], kind, key, is_first, bound, is_in):
            end = middle
        else:
            begin = middle + 1
    return begin


@kernel
def _is_past(other: int, kind: int, key: int, is_first: bool, bound: int, is_in: bool) -> bool:
    if is_first:  # values are descending along the list
        value = link_value(kind, key, other)
        return value < bound or (is_in and value == bound)
    value = link_value(kind, other, key)
    return value > bound or (is_in and value == bound)
