"""SIGTERM and Ctrl-C, heard and counted: a program looks when it suits it, or has itself interrupted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_HEARD = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """How often the process was asked to stop."""

    def __init__(self) -> None:
        self.n_asked = 0
        self._is_raised = False

    @property
    def is_asked(self) -> bool:
        return self.n_asked > 0

    @property
    def is_hurry(self) -> bool:
        return self.n_asked > 1

    def listen(self) -> None:
        """Take the signals, also from those who have put handlers of their own in place."""
        for number in _HEARD:
            signal.signal(number, self._hear)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """While the body runs, each is a KeyboardInterrupt as well."""
        self._is_raised = True
        try:
            yield
        finally:
            self._is_raised = False

    def _hear(self, number: int, frame: Any) -> None:
        self.n_asked += 1
        if self._is_raised:
            raise KeyboardInterrupt


@contextmanager
def listening() -> Iterator[Signals]:
    """Signals while the body runs; afterwards they are whose they were."""
    before = {number: signal.getsignal(number) for number in _HEARD}
    heard = Signals()
    heard.listen()
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
