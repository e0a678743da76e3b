"""The output of a running pipeline on standard error: a live table on a terminal, else lines, or JSON lines."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from vedette.run.status import SinkStatus, Status, batch_facts

if TYPE_CHECKING:
    from collections.abc import Callable

_KEPT_WARNINGS = 1000  # so that none is shown twice
_LINE_SECONDS = 1.0  # minimum between two lines about the same sink


class Display(Protocol):
    def report(self, level: str, event: str, message: str, **facts: Any) -> None:
        """Show an event: `message` is for people, `event` and `facts` are for programs."""

    def show_line(self, line: str, pipeline: str) -> None:
        """Show a line that Spark's processes have written to standard error."""

    def show(self, status: Status, sink: SinkStatus | None) -> None:
        """Show the status. `sink` has just finished a micro-batch."""

    def close(self) -> None: ...


@contextmanager
def own_stderr() -> Iterator[TextIO]:
    """A copy of standard error for the display. While Spark starts, other output to standard error is filtered."""
    try:
        copy = os.dup(sys.stderr.fileno())
    except (AttributeError, OSError):  # it does not exist, or is not a file
        yield sys.stderr
        return
    with os.fdopen(copy, "w", encoding=sys.stderr.encoding, errors="backslashreplace", buffering=1) as out:
        yield out


def open_display(out: TextIO, log: str, quiet: bool, writes_to_terminal: bool, hide: Callable[[str], str]) -> Display:
    """The display that fits `out`. No table if a sink writes to the same terminal: it would break the table."""
    if log == "json":
        return JsonDisplay(out, hide, quiet)
    if out.isatty() and not quiet and not writes_to_terminal:
        return TableDisplay(hide, file=out)
    return LineDisplay(out, hide, quiet)


class JsonDisplay:
    """One JSON object per line, for each event and each micro-batch."""

    def __init__(self, out: TextIO, hide: Callable[[str], str], quiet: bool = False) -> None:
        self._out, self._hide, self._quiet = out, hide, quiet
        self._lock = threading.Lock()  # lines of Spark's processes come from another thread

    def report(self, level: str, event: str, message: str, **facts: Any) -> None:
        if not self._quiet or level != "info":
            self._write(level, event, message, facts)

    def show_line(self, line: str, pipeline: str) -> None:
        self._write("info", "spark", line, {"pipeline": pipeline})

    def _write(self, level: str, event: str, message: str, facts: dict[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        record = {"time": now, "level": level, "event": event, "message": self._hide(message), **facts}
        if "reason" in record:  # the only other field that may contain a secret
            record["reason"] = self._hide(record["reason"])
        with self._lock:
            print(json.dumps(record, ensure_ascii=False, default=str), file=self._out, flush=True)

    def show(self, status: Status, sink: SinkStatus | None) -> None:
        if sink is not None and sink.last is not None:
            message = f"{sink.name}: micro-batch {sink.last.number}"
            self.report("info", "batch", message, pipeline=status.pipeline, **batch_facts(sink, status.n_queries))

    def close(self) -> None:
        pass


class LineDisplay:
    """A line per event, and at most one line per second and sink."""

    def __init__(self, out: TextIO, hide: Callable[[str], str], quiet: bool = False) -> None:
        self._out, self._hide, self._quiet = out, hide, quiet
        self._shown_at: dict[str, float] = {}  # by sink
        self._lock = threading.Lock()

    def report(self, level: str, event: str, message: str, **facts: Any) -> None:
        if not self._quiet or level != "info":
            self.show_line(f"vedette: {message}", "")

    def show_line(self, line: str, pipeline: str) -> None:
        with self._lock:
            print(self._hide(line), file=self._out, flush=True)

    def show(self, status: Status, sink: SinkStatus | None) -> None:
        if sink is None or sink.last is None or time.monotonic() - self._shown_at.get(sink.name, -1e9) < _LINE_SECONDS:
            return
        self._shown_at[sink.name] = time.monotonic()
        cells = [f"{name} {cell}" for name, cell in zip(_COLUMNS[1:], _cells(status, sink)[1:], strict=True) if cell]
        self.report("info", "batch", f"{sink.name}: {', '.join(cells)}")

    def close(self) -> None:
        pass


class TableDisplay:
    """A live table with a line per sink. Events are printed above it."""

    def __init__(self, hide: Callable[[str], str], **terminal: Any) -> None:
        self._hide = hide
        self._console = Console(**terminal, markup=False, emoji=False, highlight=False)
        self._live: Live | None = None

    def report(self, level: str, event: str, message: str, **facts: Any) -> None:
        self.show_line(f"vedette: {message}", "")

    def show_line(self, line: str, pipeline: str) -> None:
        self._console.print(self._hide(line), soft_wrap=True)

    def show(self, status: Status, sink: SinkStatus | None) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        self._live.update(self._draw(status), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()

    def _draw(self, status: Status) -> Table:
        minutes, seconds = divmod(int(time.time() - status.started), 60)
        table = Table(title=f"{status.pipeline}: {status.state}, {minutes}:{seconds:02d}", title_justify="left")
        for number, name in enumerate(_COLUMNS):
            table.add_column(name, justify="right" if number else "left")
        for sink in status.sinks.values():
            table.add_row(*_cells(status, sink))
        return table


_COLUMNS = ("sink", "batch", "rows", "matches", "queries", "version", "batch time", "lag", "state", "malformed")


def _cells(status: Status, sink: SinkStatus) -> list[str]:
    """The last batch of a sink, and totals since the start. Unknown values are empty."""
    batch = sink.last
    if batch is None:
        return [sink.name, *[""] * (len(_COLUMNS) - 1)]
    return [
        sink.name,
        str(batch.number),
        _with_total(batch.n_rows, sink.n_rows),
        _with_total(batch.n_answers, sink.n_answers),
        "" if status.n_queries is None else f"{status.n_queries:,}",
        "" if sink.version is None else str(sink.version),
        f"{batch.seconds:.2f} s",
        _format_lag(batch.lag_rows, batch.lag_seconds),
        f"{batch.state_bytes / 1e6:.1f} MB" if batch.state_rows or batch.state_bytes else "",
        _with_total(batch.n_malformed, sink.n_malformed) if sink.n_malformed else "",
    ]


def _with_total(of_batch: int, total: int) -> str:
    return f"{of_batch:,} (total {total:,})"


def _format_lag(rows: int | None, seconds: float | None) -> str:
    parts = [] if rows is None else [f"{rows:,} rows"]
    return " ".join([*parts, *([] if seconds is None else [f"{seconds:.1f} s"])])


class WarningHandler(logging.Handler):
    """Shows Vedette's warnings: those of this process while the context is active, and lines of Spark's processes."""

    def __init__(self, display: Display, pipeline: str) -> None:
        super().__init__(logging.WARNING)
        self._display, self._pipeline = display, pipeline
        self._shown: deque[str] = deque(maxlen=_KEPT_WARNINGS)

    def __enter__(self) -> WarningHandler:
        logging.getLogger("vedette").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("vedette").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.show_line(record.getMessage(), True)

    def show_line(self, line: str, is_warning: bool) -> None:
        """Show a line of Spark's processes, which may be a warning of Vedette."""
        if is_warning:
            self._shown.append(_plain(line))
            self._display.report("warning", "warning", line, pipeline=self._pipeline)
        else:
            self._display.show_line(line, self._pipeline)

    def show_counted(self, warning: str) -> None:
        """Show a warning that Spark has observed, unless a line of Spark's processes has shown it."""
        if _plain(warning) not in self._shown:
            self.show_line(warning, True)


def _plain(line: str) -> str:
    return " ".join(line.split())
