"""Threads: pieces in order, errors as in a loop, nesting, limits, forks and tasks of Spark."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profiles import examples
from vedette.errors import QueryError
from vedette.native import threads
from vedette.native.budget import BOUND, bounded
from vedette.native.threads import at_most, check_threads, count_pieces, count_threads, limited, run_pieces


class PieceError(Exception):
    """What a piece raises here."""


@given(st.integers(0, 40), st.integers(1, 9), st.sets(st.integers(0, 39)))
@examples(0.5)
def test_results_are_those_of_a_loop_and_so_is_the_error(n_pieces, n_threads, failing):
    def work(piece):
        time.sleep(0.0001 * (piece % 3))
        if piece in failing:
            raise PieceError(piece)
        return piece * piece

    first = min((each for each in failing if each < n_pieces), default=None)
    with limited(n_threads):
        if first is None:
            assert run_pieces(work, n_pieces) == [piece * piece for piece in range(n_pieces)]
        else:
            with pytest.raises(PieceError) as error:
                run_pieces(work, n_pieces)
            assert error.value.args == (first,)


def test_pieces_run_at_the_same_time_and_one_thread_is_the_caller():
    barrier = threading.Barrier(2, timeout=60)

    def work(piece):
        barrier.wait()  # passes only if another thread is here, too
        return threading.current_thread()

    with limited(2):
        found = run_pieces(work, 2)

    assert threading.current_thread() in found
    assert len(set(found)) == 2


def test_no_piece_is_started_after_an_error():
    started = []

    def work(piece):
        started.append(piece)
        raise KeyError(piece)

    with limited(1), pytest.raises(KeyError):
        run_pieces(work, 5)
    with limited(2), pytest.raises(KeyError, match="0"):
        run_pieces(work, 500)

    assert len(started) < 50


def test_an_interruption_of_the_caller_waits_for_the_pieces_that_run():
    caller, ended = threading.current_thread(), []
    barrier = threading.Barrier(2, timeout=60)

    def work(piece):
        barrier.wait()
        if threading.current_thread() is caller:
            raise KeyboardInterrupt
        time.sleep(0.05)
        ended.append(piece)

    with limited(2), pytest.raises(KeyboardInterrupt):
        run_pieces(work, 2)

    assert len(ended) == 1


def test_what_a_helper_raises_is_raised_even_if_it_ends_the_program():
    caller = threading.current_thread()
    barrier = threading.Barrier(2, timeout=60)

    def work(piece):
        barrier.wait()
        raise PieceError if threading.current_thread() is caller else SystemExit

    for _ in range(5):
        with limited(2), pytest.raises(SystemExit):
            run_pieces(work, 2)


def test_threads_that_wait_keep_no_results():
    class Result:
        pass

    kept = weakref.WeakSet()

    def work(piece):
        kept.add(made := Result())
        return made

    with limited(4):
        for _ in range(20):
            run_pieces(work, 8)
    deadline = time.monotonic() + 60
    while kept and time.monotonic() < deadline:
        time.sleep(0.01)

    assert not kept


def test_a_piece_has_one_thread_and_the_bound_and_the_context_of_the_caller():
    variable = contextvars.ContextVar("variable", default="none")
    variable.set("of the caller")
    barrier = threading.Barrier(2, timeout=60)

    def work(piece):
        barrier.wait()
        return count_threads(), count_pieces(1 << 30, 1), BOUND.n_bytes, variable.get()

    with limited(2), bounded(77):
        assert run_pieces(work, 2) == [(1, 1, 77, "of the caller")] * 2
        assert count_threads() == 2


def test_many_callers_share_the_threads_without_waiting_for_each_other():
    def call(number):
        with limited(4):
            return sum(run_pieces(lambda piece: sum(run_pieces(lambda inner: inner, 5)) + piece * number, 20))

    with ThreadPoolExecutor(16) as callers:
        assert list(callers.map(call, range(200))) == [200 + 190 * number for number in range(200)]


def test_the_number_of_threads_comes_from_the_argument_then_the_setting_then_the_cores(set_limits, monkeypatch):
    monkeypatch.setattr(threads, "count_cores", lambda: 6)
    monkeypatch.delenv("VEDETTE_THREADS", raising=False)
    set_limits()

    assert count_threads() == 6
    set_limits(threads=3)
    assert count_threads() == 3
    with limited(5):
        assert count_threads() == 5  # an argument overrides the setting
        with limited(None):
            assert count_threads() == 5
        with limited(2), limited(4):
            assert count_threads() == 2  # an inner block cannot use more
    with at_most(8):
        assert count_threads() == 3
    with at_most(2):
        assert count_threads() == 2
    assert count_threads() == 3


def test_a_task_of_spark_has_one_thread_unless_an_argument_says_more(monkeypatch):
    monkeypatch.setattr(threads, "count_cores", lambda: 6)
    context = SimpleNamespace(TaskContext=SimpleNamespace(get=lambda: object()))
    monkeypatch.setitem(sys.modules, "pyspark.taskcontext", context)

    assert count_threads() == 1
    with limited(2):
        assert count_threads() == 2


@pytest.mark.parametrize(("n", "n_threads", "expected"), [(19, 4, 1), (20, 4, 2), (20, 1, 1), (35, 4, 3), (500, 2, 4)])
def test_pieces_have_at_least_a_given_size_and_are_a_few_for_each_thread(n, n_threads, expected):
    with limited(n_threads):
        assert count_pieces(n, 10) == expected


@pytest.mark.parametrize("given", [0, -1, 1.5, "2", True, 1 << 40])
def test_an_invalid_number_of_threads_is_refused(given):
    with pytest.raises(QueryError, match=r"threads must be an integer from 1 to 1,024, or None for all cores; got "):
        check_threads(given)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")  # that is what this test is about
def test_a_forked_process_starts_threads_of_its_own():
    with limited(2):
        run_pieces(lambda piece: piece, 4)  # the threads of this process exist
        barrier = threading.Barrier(2, timeout=60)
        child = os.fork()
        if child == 0:
            try:
                found = run_pieces(lambda piece: barrier.wait() >= 0, 2)  # hangs with a single thread
                os._exit(0 if found == [True, True] else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert run_pieces(lambda piece: piece, 3) == [0, 1, 2]


def test_the_caller_works_alone_if_no_thread_can_start(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threads, "_POOL", threads._Pool())
    monkeypatch.setattr(threading.Thread, "start", refuse)

    with limited(4):
        assert run_pieces(lambda piece: piece, 6) == [0, 1, 2, 3, 4, 5]
