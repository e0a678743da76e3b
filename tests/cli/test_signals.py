"""Signals are counted while somebody listens, and go where they went before."""

from __future__ import annotations

import os
import signal

from vedette.cli.signals import listening


def test_signals_are_counted_and_given_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    with listening() as signals:
        assert not signals.is_asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert (signals.is_asked, signals.is_hurry) == (True, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.is_hurry

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
