"""All cores for one answer: the pieces of a batch are processed by the threads of one shared pool.

Kernels release the GIL, so pieces run at the same time. The caller takes part, and pieces are started in order: the
results, and the error if one raises, are those of a loop. A piece that asks for threads itself gets one. There are as
many threads as cores, unless the setting `threads`, an argument or a task of Spark, which has one core, says less.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, Generic, TypeVar

from vedette.errors import QueryError, shown
from vedette.native.budget import BOUND, bounded
from vedette.native.cores import count_cores
from vedette.settings import settings

MOST_THREADS = 1024
PIECES_PER_THREAD = 2  # so that threads finish at about the same time
Result = TypeVar("Result")


class _Limit(threading.local):
    n_threads: int | None = None


_LIMIT = _Limit()  # of the current thread; None: the default


def check_threads(threads: int | None) -> int | None:
    """The argument `threads`. Raises QueryError unless it is a number of threads, or None for the default."""
    is_number = isinstance(threads, int) and not isinstance(threads, bool)
    if threads is not None and not (is_number and 1 <= threads <= MOST_THREADS):
        raise QueryError(
            f"must be an integer from 1 to {MOST_THREADS:,}, or None for all cores; got {shown(threads)}",
            option="threads",
        )
    return threads


class limited:  # noqa: N801  used like a function
    """Use at most this many threads inside the block; None: as many as outside. Do not yield inside it.

    A block inside another one cannot use more threads than the outer one.
    """

    __slots__ = ("_before", "_threads")

    def __init__(self, threads: int | None) -> None:
        self._threads = threads

    def __enter__(self) -> None:
        self._before = _LIMIT.n_threads
        if self._threads is not None:
            _LIMIT.n_threads = self._threads if self._before is None else min(self._before, self._threads)

    def __exit__(self, *_: object) -> None:
        _LIMIT.n_threads = self._before


def limit_each(threads: int | None, pieces: Iterator[Result]) -> Iterator[Result]:
    """The elements of an iterator. Each is computed with at most this many threads."""
    end = object()
    try:
        while True:
            with limited(threads):
                found: Any = next(pieces, end)
            if found is end:
                return
            yield found
    finally:
        if hasattr(pieces, "close"):
            pieces.close()


def count_threads() -> int:
    """How many threads an answer may use here."""
    if _LIMIT.n_threads is not None:
        return _LIMIT.n_threads
    return 1 if _is_spark_task() else settings().threads or count_cores()


def at_most(threads: int) -> limited:
    """Use at most this many threads inside the block, and no more than are allowed here anyway."""
    return limited(min(threads, count_threads()))


def count_pieces(n: int, least: int) -> int:
    """Into how many pieces of at least `least` elements to cut `n` elements for the threads; 1 if there is only one."""
    if n < 2 * least or (n_threads := count_threads()) == 1:
        return 1
    return min(n // least, PIECES_PER_THREAD * n_threads)


def cut(n: int, n_pieces: int) -> list[int]:
    """Where the pieces of `n` elements begin, about equal in size, and where the last one ends."""
    return [n * piece // n_pieces for piece in range(n_pieces + 1)]


def run_pieces(work: Callable[[int], Result], n_pieces: int) -> list[Result]:
    """`[work(0), ..., work(n_pieces - 1)]`, by as many threads as are allowed here.

    `work` has the caller's bound on answers (see `budget`), wherever it runs. If it raises, no further piece is
    started, and the error of the first piece that raises is raised when no piece runs any more.
    """
    n_helpers = min(count_threads(), n_pieces) - 1
    if n_helpers < 1:
        return [work(piece) for piece in range(n_pieces)]
    job = _Job(work, n_pieces)
    helpers = _start(job, n_helpers)
    try:
        job.help()
    finally:
        job.stop()
        running = [each for each in helpers if not each.cancel()]
        wait(running)
    for each in running:
        each.result()  # raises what is not an Exception, such as SystemExit
    return job.results()


def _start(job: _Job[Any], n_helpers: int) -> list[Future[None]]:
    """Let other threads help. They may be fewer, or none if the interpreter shuts down: then the caller works alone."""
    helpers: list[Future[None]] = []
    with suppress(RuntimeError):
        for _ in range(n_helpers):
            helpers.append(_pool().submit(contextvars.copy_context().run, job.help))
    return helpers


class _Job(Generic[Result]):
    """Pieces of one call. Threads take the next one as long as there are any."""

    def __init__(self, work: Callable[[int], Result], n_pieces: int) -> None:
        self._work = work
        self._n_pieces = n_pieces
        self._bound = BOUND.n_bytes
        self._lock = threading.Lock()
        self._next = 0
        self._found: list[Any] = [None] * n_pieces
        self._errors: dict[int, Exception] = {}

    def help(self) -> None:
        with limited(1), bounded(self._bound):
            while (piece := self._take()) is not None:
                try:
                    self._found[piece] = self._work(piece)
                except Exception as error:
                    self._errors[piece] = error
                    self.stop()

    def stop(self) -> None:
        """Start no further piece."""
        with self._lock:
            self._next = self._n_pieces

    def results(self) -> list[Result]:
        if self._errors:  # pieces before the first error have all been started, so it is the error of a loop
            raise self._errors[min(self._errors)]
        return self._found

    def _take(self) -> int | None:
        with self._lock:
            if self._next == self._n_pieces:
                return None
            self._next += 1
            return self._next - 1


class _Pool:
    """The threads of this process. A process that was forked has none, and starts its own."""

    def __init__(self) -> None:
        self.reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self.lock = threading.Lock()
        self.executor: ThreadPoolExecutor | None = None


_POOL = _Pool()


def _pool() -> ThreadPoolExecutor:
    with _POOL.lock:
        if _POOL.executor is None:
            _POOL.executor = ThreadPoolExecutor(max(2, count_cores()), "vedette")
        return _POOL.executor


def _is_spark_task() -> bool:
    """Whether this process is a Python worker of Spark that runs a task. Does not import pyspark."""
    module: Any = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None
