"""Signals are counted inside the block, and the previous handlers are restored."""

from __future__ import annotations

import os
import signal

import pytest

from vedette.run.signals import handled_signals


def test_signals_are_counted_and_old_handlers_restored():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    with handled_signals() as signals:
        assert not signals.is_stopping
        os.kill(os.getpid(), signal.SIGTERM)
        assert (signals.is_stopping, signals.is_urgent) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.is_urgent

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_interrupt_inside_the_block_only(number):
    with handled_signals() as signals:
        with pytest.raises(KeyboardInterrupt), signals.raised():
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert signals.n_received == 2
