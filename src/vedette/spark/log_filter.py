"""Noise: what Spark says on every start and nobody can act on, kept from the terminal. All else passes.

It passes to standard error, or to who asks for it; what Vedette warns of in Spark's workers is known there by a mark.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from pyspark import TaskContext
from pyspark.logger import PySparkLogger

# Java says it because Spark's launcher always asks for that module; there is no option to leave it out.
_SAID_BY_JAVA = b"WARNING: Using incubator modules: jdk.incubator.vector"
# A worker says it whenever it begins and ends a micro-batch of a stream with state; there is no level that it heeds.
_SAID_BY_WORKERS = (
    b"Starting Streaming TransformWithStateInPandas Python worker",
    b"Streaming TransformWithStateInPandas Python worker",
)
# A Connect client says it of each setting that went to the server it has just started, and again to its session.
_SAID_BY_CONNECT = r"Failed to set spark\.(connect|driver|executor|ui)\.[\s\S]*CANNOT_MODIFY_(STATIC_)?CONFIG"
# What a warning of a worker begins with, in its log as on a terminal.
_MARK = "vedette: warning: "

Hearer = Callable[[str, bool], None]  # of a line, and whether it is what Vedette warns of in a worker, without its mark
_hearers: list[Hearer] = []


@contextmanager
def heard_by(hearer: Hearer) -> Iterator[None]:
    """While the body runs, lines that Spark's processes write to standard error go to `hearer`, called by a thread.

    What comes later is of what has ended, and nobody is told.
    """
    _hearers.append(hearer)
    try:
        yield
    finally:
        _hearers[_hearers.index(hearer)] = _pass_over


@contextmanager
def quiet_start() -> Iterator[None]:
    """While Spark starts, read what it writes to standard error and pass on all but the lines above."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_SAID_BY_CONNECT, category=UserWarning)
        if sys.platform == "win32":  # there a child process has no part in our file descriptors
            yield
            return
        terminal = os.dup(2)
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        # Java keeps the pipe as its standard error for as long as it lives, so the thread reads as long.
        threading.Thread(target=_pass_on, args=(reading, terminal), name="vedette-stderr", daemon=True).start()
        try:
            yield
        finally:
            os.dup2(terminal, 2)


def quiet_end() -> None:
    """Let Ctrl-C be a plain KeyboardInterrupt, without what Spark and Py4J write on the way. For commands."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's own calls Java from inside the handler
    logging.disable(logging.CRITICAL)


def quiet_errors() -> None:
    """Let what Spark refuses be an exception alone, without a record of it on standard error as well."""
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    for logger in (*loggers, logging.getLogger("py4j")):
        logger.setLevel(logging.CRITICAL + 1)


def _pass_over(line: str, is_warning: bool) -> None:
    pass


class _Marked(logging.StreamHandler[TextIO]):
    """Writes warnings as lines with the mark, each in one piece."""

    def format(self, record: logging.LogRecord) -> str:
        return _MARK + " ".join(record.getMessage().split())


def mark_warnings() -> None:
    """In a worker of Spark, let what Vedette warns of have the mark, unless somebody has set logging up there."""
    log = logging.getLogger("vedette")
    if TaskContext.get() is not None and not log.hasHandlers():
        log.addHandler(_Marked())


mark_warnings()  # a worker has no program of ours that could; it imports this module with any of this package


def _pass_on(reading: int, terminal: int) -> None:
    with os.fdopen(reading, "rb", buffering=0) as said, os.fdopen(terminal, "wb", buffering=0) as shown:

        def show(line: bytes) -> None:
            if not _hearers:
                shown.write(line)
            elif line.strip():
                text = line.decode(errors="replace").rstrip("\n")
                with suppress(Exception):  # who cannot hear must not stop Java, which waits for its reader
                    _hearers[-1](text.removeprefix(_MARK), text.startswith(_MARK))

        rest, n_owed = b"", 0  # workers end what they say with an empty line, and several may speak at once
        while piece := said.read(65536):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(_SAID_BY_WORKERS):
                    n_owed += 1
                elif not line and n_owed:
                    n_owed -= 1
                elif not line.startswith(_SAID_BY_JAVA):
                    show(line + b"\n")
        show(rest)
