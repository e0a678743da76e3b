"""Filters messages from standard error that Spark prints on every start and that need no action.

All other lines are forwarded to standard error, or to a listener. Vedette's warnings in Spark's workers have a prefix,
by which they are recognised.
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

# Java prints it because Spark's launcher always requests that module; no option disables it.
_FROM_JAVA = b"WARNING: Using incubator modules: jdk.incubator.vector"
# A worker prints these when it begins and ends a micro-batch of a stateful stream; no log level disables them.
_FROM_WORKERS = (
    b"Starting Streaming TransformWithStateInPandas Python worker",
    b"Streaming TransformWithStateInPandas Python worker",
)
# A Connect client warns about each setting that it has already sent to the server that it started.
_FROM_CONNECT = r"Failed to set spark\.(connect|driver|executor|ui)\.[\s\S]*CANNOT_MODIFY_(STATIC_)?CONFIG"
# The prefix of Vedette's warnings in workers, in a log and on a terminal.
_PREFIX = "vedette: warning: "

Listener = Callable[[str, bool], None]  # gets a line without the prefix, and whether it is a warning of Vedette
_listeners: list[Listener] = []


@contextmanager
def listened_by(listener: Listener) -> Iterator[None]:
    """Inside the block, lines of Spark's processes on standard error go to `listener`, which a thread calls.

    Lines that arrive after the block are dropped: the pipeline has ended.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners[_listeners.index(listener)] = _drop


@contextmanager
def quiet_start() -> Iterator[None]:
    """While Spark starts, read its standard error and forward all lines but those above."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_FROM_CONNECT, category=UserWarning)
        if sys.platform == "win32":  # child processes do not inherit file descriptors there
            yield
            return
        terminal = os.dup(2)
        reading, writing = os.pipe()
        os.dup2(writing, 2)
        os.close(writing)
        # Java uses the pipe as its standard error until it ends, so the thread reads until then.
        threading.Thread(target=_forward, args=(reading, terminal), name="vedette-stderr", daemon=True).start()
        try:
            yield
        finally:
            os.dup2(terminal, 2)


def quiet_end() -> None:
    """Make Ctrl-C a plain KeyboardInterrupt, without log messages of Spark and Py4J. For commands."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's own handler calls Java
    logging.disable(logging.CRITICAL)


def quiet_errors() -> None:
    """Do not also log errors of Spark on standard error: they are raised as exceptions."""
    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    for logger in (*loggers, logging.getLogger("py4j")):
        logger.setLevel(logging.CRITICAL + 1)


def _drop(line: str, is_warning: bool) -> None:
    pass


class _PrefixedHandler(logging.StreamHandler[TextIO]):
    """Writes each warning as one line with the prefix."""

    def format(self, record: logging.LogRecord) -> str:
        return _PREFIX + " ".join(record.getMessage().split())


def prefix_warnings() -> None:
    """In a Spark worker, write Vedette's warnings with the prefix, unless logging is already configured there."""
    log = logging.getLogger("vedette")
    if TaskContext.get() is not None and not log.hasHandlers():
        log.addHandler(_PrefixedHandler())


prefix_warnings()  # on import: a worker has no other entry point, and imports this module with the package


def _forward(reading: int, terminal: int) -> None:
    with os.fdopen(reading, "rb", buffering=0) as source, os.fdopen(terminal, "wb", buffering=0) as shown:

        def show(line: bytes) -> None:
            if not _listeners:
                shown.write(line)
            elif line.strip():
                text = line.decode(errors="replace").rstrip("\n")
                with suppress(Exception):  # an error of the listener must not stop this reader: Java waits for it
                    _listeners[-1](text.removeprefix(_PREFIX), text.startswith(_PREFIX))

        rest, n_empty = b"", 0  # workers print an empty line after each message, and several may print at once
        while piece := source.read(65536):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(_FROM_WORKERS):
                    n_empty += 1
                elif not line and n_empty:
                    n_empty -= 1
                elif not line.startswith(_FROM_JAVA):
                    show(line + b"\n")
        show(rest)
