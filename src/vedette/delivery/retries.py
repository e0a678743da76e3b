"""When a request is tried again: which answers may change, and how long to wait for the next try."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

FIRST_DELAY, LONGEST_DELAY = 0.5, 30.0  # seconds
_MAY_CHANGE = frozenset({408, 409, 425, 429})  # besides all from 500 on


@dataclass(frozen=True)
class Answer:
    """What one try led to. `status` is None if there was no response."""

    status: int | None = None
    reason: str = ""
    retry_after: float | None = None  # seconds, if the receiver says so
    is_final: bool = False  # without a response: another try cannot succeed

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_retryable(self) -> bool:
        if self.status is None:
            return not self.is_final
        return self.status >= 500 or self.status in _MAY_CHANGE


def delay_before(attempt: int, retry_after: float | None, jitter: random.Random) -> float:
    """Seconds to wait before a try, the second being number 2: they double, and are shortened at random by up to half.

    The receiver's own `Retry-After` is a minimum.
    """
    doubled = FIRST_DELAY * 2.0 ** min(attempt - 2, 30)
    delay = min(LONGEST_DELAY, doubled) * jitter.uniform(0.5, 1.0)
    return delay if retry_after is None else max(delay, retry_after)


def read_retry_after(text: str | None, now: float | None = None) -> float | None:
    """The seconds in a header Retry-After: a number of seconds, or a date. None if it is missing or invalid.

    >>> read_retry_after("120"), read_retry_after("soon")
    (120.0, None)
    >>> read_retry_after("Wed, 21 Oct 2015 07:28:10 GMT", now=1445412480.0)
    10.0
    """
    if text is None or len(text) > 100:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        at = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    wait = at - (time.time() if now is None else now)
    return max(0.0, wait) if math.isfinite(wait) else None
