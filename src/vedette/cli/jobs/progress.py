"""Progress on a terminal: percentage, rows per second, time left. Nothing is printed if there is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

Advance = Callable[[int, int], None]  # gets the steps done, and the rows read


class _Rate(ProgressColumn):
    """Rows so far, and rows per second."""

    def render(self, task: Task) -> Text:
        rows = int(task.fields.get("rows", 0))
        seconds = task.elapsed or 0.0
        return Text(f"{rows:,} rows  {rows / seconds:,.0f} rows/s" if rows and seconds > 0 else "")


@contextmanager
def show_progress(doing: str, total: int | None, quiet: bool) -> Iterator[Advance]:
    """Show a bar while the body runs. The body calls the function that it gets with steps done and rows read."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, rows: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        _Rate(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done, rows: progress.update(task, completed=done, rows=rows)


@contextmanager
def timed() -> Iterator[Callable[[], float]]:
    """A function that returns the seconds since the body began, or after its end how long it took."""
    start = time.perf_counter()
    ended: list[float] = []
    yield lambda: (ended[0] if ended else time.perf_counter()) - start
    ended.append(time.perf_counter())
