"""The bound of an answer: pieces of rows, and cuts by bytes."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.native.budget import BOUND, UNBOUNDED, OverBudgetError, Pieces, bounded, check_bytes, cut_by_bytes
from vedette.native.buffers import output_int32

sizes = st.lists(st.integers(0, 50), max_size=40)


def find_over(counts):
    """A `find` that allocates the given number of values per row."""

    def find(start, end):
        output_int32(sum(counts[start:end]))
        return np.repeat(np.arange(start, end, dtype=np.int32), counts[start:end])

    return find


@given(sizes, st.integers(1, 50), st.integers(1, 400), st.integers(1, 400))
def test_pieces_together_are_the_whole_answer_and_each_is_within_its_bound(counts, n_first, target, most):
    pieces = list(Pieces(n_first, target, most).of(find_over(counts), len(counts)))

    assert [start for start, _, _ in pieces] == [0, *(end for _, end, _ in pieces[:-1])]
    assert pieces[-1][1] == len(counts)
    assert np.concatenate([found for _, _, found in pieces]).tolist() == find_over(counts)(0, len(counts)).tolist()
    assert all(found.nbytes <= most or end - start == 1 for start, end, found in pieces)


def test_rows_with_large_answers_are_asked_about_in_smaller_pieces():
    counts = [0] * 5000 + [100] * 10
    pieces = list(Pieces(100, 400, 800).of(find_over(counts), len(counts)))

    assert max(end - start for start, end, _ in pieces) > 100
    assert max(found.nbytes for _, _, found in pieces) <= 800


@given(sizes, st.integers(1, 100))
def test_parts_cut_by_bytes_are_within_the_bound_or_single_elements(n_bytes, most):
    cuts = cut_by_bytes(np.array(n_bytes, np.int64), most)
    parts = np.split(np.array(n_bytes, np.int64), cuts)

    assert all(len(part) for part in parts) or not n_bytes
    assert all(part.sum() <= most or len(part) == 1 for part in parts)
    assert all(a.sum() + b[0] > most for a, b in itertools.pairwise(parts))  # no unnecessary cuts


def test_an_output_above_the_bound_is_refused_before_it_is_allocated():
    with bounded(40):
        output_int32(10)
        with pytest.raises(OverBudgetError) as error:
            output_int32(1 << 50)

    assert error.value.n_bytes == 4 << 50
    check_bytes(1 << 50)  # no bound outside the block


def test_a_bound_applies_to_its_thread_only():
    seen = []
    with bounded(40):
        thread = threading.Thread(target=lambda: seen.append(BOUND.n_bytes))
        thread.start()
        thread.join()

    assert seen == [UNBOUNDED]
    assert BOUND.n_bytes == UNBOUNDED
