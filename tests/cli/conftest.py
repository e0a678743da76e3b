"""Shared by the tests of commands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def terminal_output():
    """Run a command whose standard error is a terminal. Returns what it prints there."""
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")

    def run_command(*arguments):
        ours, theirs = pty.openpty()
        command = [sys.executable, "-c", "from vedette.cli import main; main()", *map(str, arguments)]
        process = subprocess.Popen(command, stderr=theirs, stdout=subprocess.DEVNULL)
        os.close(theirs)
        printed = b""
        try:
            while piece := os.read(ours, 4096):
                printed += piece
        except OSError:  # a terminal whose other end is closed
            pass
        os.close(ours)
        assert process.wait() == 0
        return printed.decode()

    return run_command
