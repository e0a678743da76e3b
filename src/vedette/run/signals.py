"""Counts SIGTERM and Ctrl-C, so that a program can check for them, or be interrupted by them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Signals:
    """How often the process was asked to stop."""

    def __init__(self) -> None:
        self.n_received = 0
        self._is_raised = False

    @property
    def is_stopping(self) -> bool:
        """Whether a signal was received."""
        return self.n_received > 0

    @property
    def is_urgent(self) -> bool:
        """Whether a second signal was received."""
        return self.n_received > 1

    def install(self) -> None:
        """Install the handlers, also over handlers that others have installed since."""
        for number in _STOP_SIGNALS:
            signal.signal(number, self._receive)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Inside the block, each signal also raises KeyboardInterrupt."""
        self._is_raised = True
        try:
            yield
        finally:
            self._is_raised = False

    def _receive(self, number: int, frame: Any) -> None:
        self.n_received += 1
        if self._is_raised:
            raise KeyboardInterrupt


@contextmanager
def handled_signals() -> Iterator[Signals]:
    """Handle signals inside the block; the previous handlers are restored after it."""
    before = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
    signals = Signals()
    signals.install()
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
