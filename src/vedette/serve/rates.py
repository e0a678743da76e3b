"""The limit on rows per second, by caller."""

from __future__ import annotations

import math
import time

from vedette.serve.problems import Problem

_MOST_CALLERS = 10_000


class Rates:
    """Each caller may send `per_second` rows a second, and two seconds' worth at once. 0 means no limit.

    A caller may have its own limit instead.
    """

    def __init__(self, per_second: int) -> None:
        self._per_second = per_second
        self._left: dict[str, tuple[float, float]] = {}  # by caller: rows that may be sent, and when that was counted

    def take(self, caller: str, n_rows: int, own: int | None = None, now: float | None = None) -> None:
        """Count rows. Raises a problem with status 429 if they are too many now."""
        per_second = self._per_second if own is None else own
        if not per_second:
            return
        now = time.monotonic() if now is None else now
        most = 2.0 * per_second
        left, since = self._left.get(caller, (most, now))
        left = min(most, left + (now - since) * per_second)
        if n_rows > left and n_rows > most:
            raise Problem(
                429,
                "too_many_rows",
                f"the request has {n_rows:,} rows; at most {int(most):,} can be sent at once (--rows-per-second)",
            )
        if n_rows > left:
            seconds = math.ceil((n_rows - left) / per_second)
            raise Problem(
                429,
                "too_many_rows",
                f"more than {per_second:,} rows a second, the limit (--rows-per-second); wait {seconds} s",
                headers={"Retry-After": str(seconds)},
            )
        if len(self._left) >= _MOST_CALLERS:
            self._left.clear()
        self._left[caller] = (left - n_rows, now)

    def correct(self, caller: str, more: int) -> None:
        """Count rows that a request had besides those that were taken for it; they delay the next ones. May be < 0."""
        if caller in self._left:
            left, since = self._left[caller]
            self._left[caller] = (left - more, since)
