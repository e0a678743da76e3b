"""Signals are counted while somebody listens, and go where they went before."""

from __future__ import annotations

import os
import signal

import pytest

from vedette.run.signals import listening


def test_signals_are_counted_and_given_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    with listening() as signals:
        assert not signals.is_asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert (signals.is_asked, signals.is_hurry) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.is_hurry

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_interrupt_while_that_is_wanted(number):
    with listening() as signals:
        with pytest.raises(KeyboardInterrupt), signals.raised():
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert signals.n_asked == 2
