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
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from vedette.errors import QueryError, shown
from vedette.native.budget import BOUND, bounded
from vedette.native.cores import count_cores
from vedette.settings import settings

MOST_THREADS = 1024
MANY = 8  # if a thread would get this many times the least, it gets two pieces: then a core that is busy delays less
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
    return min(n // least, 2 * n_threads if n >= MANY * least * n_threads else n_threads)


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
    try:
        with suppress(RuntimeError):  # no thread can start, as when the interpreter shuts down: the caller works alone
            _POOL.ask(job, n_helpers)
        job.help()
    finally:
        job.close()
    return job.results()


class _Job(Generic[Result]):
    """Pieces of one call. Threads take the next one as long as there are any."""

    def __init__(self, work: Callable[[int], Result], n_pieces: int) -> None:
        self._work = work
        self._n_pieces = n_pieces
        self._bound = BOUND.n_bytes
        self._lock = threading.Lock()
        self._next = self._n_helping = 0
        self._is_idle = threading.Lock()  # held while threads help, if the caller waits for them
        self._found: list[Any] = [None] * n_pieces
        self._errors: dict[int, BaseException] = {}

    def help(self) -> None:
        """Work on pieces until none is left."""
        with self._lock:
            if self._next == self._n_pieces:
                return
            self._n_helping += 1
        try:
            with limited(1), bounded(self._bound):
                while (piece := self._take()) is not None:
                    try:
                        self._found[piece] = self._work(piece)
                    except BaseException as error:  # the caller raises it
                        self._errors[piece] = error
                        self._stop()
        finally:
            with self._lock:
                self._n_helping -= 1
                if self._n_helping == 0 and self._is_idle.locked():
                    self._is_idle.release()

    def close(self) -> None:
        """Start no further piece, and wait until none runs."""
        self._stop()
        with self._lock:
            if self._n_helping == 0:
                return
            self._is_idle.acquire()
        self._is_idle.acquire()  # a thread that ends its last piece releases it

    def results(self) -> list[Result]:
        if self._errors:  # pieces before the first error have all been started, so it is the error of a loop
            raise self._errors[min(self._errors, key=lambda piece: (isinstance(self._errors[piece], Exception), piece))]
        found, self._found = self._found, []  # a thread that was asked too late keeps nothing
        return found

    def _stop(self) -> None:
        with self._lock:
            self._next = self._n_pieces

    def _take(self) -> int | None:
        with self._lock:
            if self._next == self._n_pieces:
                return None
            self._next += 1
            return self._next - 1


class _Pool:
    """The threads of this process, started when they are first needed. A process that was forked starts its own.

    A queue of its own instead of an executor: a round trip through futures takes 10 to 40 microseconds longer.
    """

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._asked: SimpleQueue[tuple[contextvars.Context, _Job[Any]]] = SimpleQueue()
        self._n_threads = 0
        self._n_free = 0  # threads that nobody has asked; below 0 if there are fewer threads than were asked

    def ask(self, job: _Job[Any], n_helpers: int) -> None:
        """Let that many threads help, as soon as they are free. Raises RuntimeError if one cannot start."""
        for _ in range(n_helpers):
            self._asked.put((contextvars.copy_context(), job))
        with self._lock:
            self._n_free -= n_helpers
            for _ in range(min(-self._n_free, max(2, count_cores()) - self._n_threads)):
                threading.Thread(target=self._serve, name="vedette", daemon=True).start()
                self._n_threads += 1
                self._n_free += 1

    def _serve(self) -> None:
        while True:
            context, job = self._asked.get()
            context.run(job.help)
            del context, job  # a thread that waits keeps nothing
            with self._lock:
                self._n_free += 1


_POOL = _Pool()


def _is_spark_task() -> bool:
    """Whether this process is a Python worker of Spark that runs a task. Does not import pyspark."""
    module: Any = sys.modules.get("pyspark.taskcontext")
    return module is not None and module.TaskContext.get() is not None
