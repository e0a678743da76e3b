"""Evaluations that raise an exception, which is a bug of Vedette. The bug must not affect other queries.

A pair of a row and a query for which the evaluation raises counts as failed, like a division by zero: null for that
row, and counted. Other pairs are not affected. Each query is logged once in a process, by its id.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_LOGGED = 10_000  # queries; later ones are counted but not logged

IdsOf = Callable[[NDArray[np.int32]], Sequence[Any]]
_log = logging.getLogger("vedette.language")
_logged: set[tuple[int, str]] = set()
_logging = threading.Lock()
_ids_of: ContextVar[IdsOf | None] = ContextVar("ids_of", default=None)  # the threads of an answer share it


class naming:  # noqa: N801  used like a function
    """In this context, `ids_of` maps the query numbers of residuals to ids."""

    __slots__ = ("_before", "_ids_of")

    def __init__(self, ids_of: IdsOf | None) -> None:
        self._ids_of = ids_of

    def __enter__(self) -> None:
        self._before = _ids_of.get()
        _ids_of.set(self._ids_of)

    def __exit__(self, *_: object) -> None:
        _ids_of.set(self._before)


def renumbering(to_outer: Callable[[NDArray[np.int32]], NDArray[np.int32]]) -> naming:
    """In this context, residuals have their own query numbers; `to_outer` maps them to those of the outer context."""
    outer = _ids_of.get()
    return naming(None if outer is None else lambda numbers: outer(to_outer(numbers)))


def evaluate_apart(
    evaluate: Callable[[NDArray[np.int64]], None], order: NDArray[np.int64]
) -> list[tuple[int, Exception]]:
    """Evaluate items in halves, after all together raised. Returns the items that raise alone, with their errors."""
    raised: list[tuple[int, Exception]] = []
    waiting = [order]
    while waiting:
        items = waiting.pop()
        try:
            evaluate(items)
        except MemoryError:
            raise
        except Exception as error:
            if len(items) == 1:
                raised.append((int(items[0]), error))
            elif len(items):
                middle = len(items) // 2
                waiting += [items[middle:], items[:middle]]
    return raised


def log_raised(shape: object, queries: Sequence[int], errors: Sequence[Exception]) -> None:
    """Log the errors of a shape, once for each query."""
    for number, error in zip(queries, errors, strict=True):
        for name in _names_of(number):
            key = (hash(shape), name)
            with _logging:
                if key in _logged or len(_logged) >= MAX_LOGGED:
                    continue
                _logged.add(key)
            what = f"{type(error).__name__}: {error}"[:500]
            _log.error("%s cannot be evaluated for some rows, which do not match it: %s", name, what, exc_info=error)


def _names_of(number: int) -> list[str]:
    ids_of = _ids_of.get()
    if ids_of is None or number < 0:
        return ["a query"]
    return [f"query {each!r}"[:200] for each in ids_of(np.array([number], np.int32))]
