"""What the tests of commands share."""

from __future__ import annotations

import sys

import pytest

from vedette.cli import main


@pytest.fixture
def run(monkeypatch, capfdbinary):
    """Run a command; exit code, standard output and standard error."""

    def run_command(*arguments):
        monkeypatch.setattr(sys, "argv", ["vedette", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        sys.stdout.flush()
        said = capfdbinary.readouterr()
        return code, said.out.decode(), said.err.decode()

    return run_command
