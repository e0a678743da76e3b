"""The command line: thin commands over the library. An error of the library is printed, and the exit code is 2."""

from __future__ import annotations


def main() -> None:
    from vedette.cli.app import app

    app()
