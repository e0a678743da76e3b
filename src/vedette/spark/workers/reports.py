"""Reports of Spark's Python workers: what a task has counted, and the warnings that it has logged.

See `vedette.spark.observation` for how the driver reads them.
"""

from __future__ import annotations

import datetime
import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from vedette.spark.workers.top_queries import TopQueries

REPORT = "_vedette_report"
STATE_ROWS = "state_rows"  # all other counts only grow
_MOST_WARNINGS = 20  # of a report; later ones replace earlier ones


class _Kept(logging.Handler):
    """Keeps the last warnings of this process until a report takes them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: deque[str] = deque(maxlen=_MOST_WARNINGS)

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(" ".join(record.getMessage().split()))

    def take(self) -> list[str]:
        taken = list(dict.fromkeys(self.messages))
        self.messages.clear()
        return taken


_kept = _Kept()


def keep_warnings() -> None:
    """From now on, keep warnings for the next report of this process."""
    log = logging.getLogger("vedette")
    if _kept not in log.handlers:
        log.addHandler(_kept)


def add_empty(part: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """Answers with an empty column of reports."""
    return part.append_column(REPORT, pa.nulls(part.num_rows, pa.string()))


def write_report(counts: Mapping[str, int | None], version: int | None, top: TopQueries | None = None) -> str:
    """A report as a text. It takes the warnings that were kept since the last one."""
    report: dict[str, Any] = {name: int(n) for name, n in counts.items() if n is not None}
    hits = None if top is None else top.write(_task_number())
    if hits is not None:
        report["hits"] = hits
    warnings = _kept.take()
    if version is not None:
        report["version"] = version
    return json.dumps(report | ({"warnings": "\n".join(warnings)} if warnings else {}), ensure_ascii=False)


def blank(type_: pa.DataType) -> pa.Array:
    """One value that is not null: columns of answers may not have nulls."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.array([[]], type_)
    if pa.types.is_timestamp(type_):
        return pa.array([datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)], type_)
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return pa.array([""], type_)
    return pa.array([0], type_) if pa.types.is_integer(type_) or pa.types.is_floating(type_) else pa.nulls(1, type_)


class ShardReport:
    """What a shard counts in one micro-batch. It does nothing unless the plan says that counts are observed."""

    def __init__(self, operator: Any, monitor: Any, shard: int, plan: dict[str, Any]) -> None:
        self._name: str | None = plan.get("counted")  # what the answers are called
        self._n_answers = 0
        self._top = TopQueries()
        self._shard = shard
        if self._name is not None:
            keep_warnings()
            self._count: Callable[[], dict[str, int]] = lambda: operator.read_counts(monitor, shard, plan)
            self._before = self._count()

    def counted(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The tables; their rows are counted."""
        for table in tables:
            self._n_answers += table.num_rows
            if self._name is not None and "query" in table.column_names:
                self._top.add_ids(table["query"])
            yield table

    def rows(
        self, columns: Sequence[tuple[str, pa.DataType]], version: int | None, *, is_full: bool = False
    ) -> Iterator[pa.Table]:
        """The row that reports the counts, after all answers. `is_full`: the step had the cost of the whole state."""
        if self._name is None:
            return
        counts = {name: n if name == STATE_ROWS else n - self._before[name] for name, n in self._count().items()}
        if not _is_first(self._shard):  # rows and timers of one micro-batch are two calls
            counts.pop(STATE_ROWS)
        counts |= {self._name: self._n_answers, "shard_steps": 1, "full_loads": is_full}
        report = write_report(counts, version, self._top)
        arrays = [*(blank(type_) for _, type_ in columns), pa.array([report], pa.string())]
        yield pa.Table.from_arrays(arrays, names=[*(name for name, _ in columns), REPORT])


def _task_number() -> int:
    context = TaskContext.get()
    return -1 if context is None else int(context.taskAttemptId())


_task = -1  # whose shards are in `_shards`
_shards: set[int] = set()


def _is_first(shard: int) -> bool:
    """Whether this is the first report of a shard in this task."""
    global _task
    task = _task_number()
    if task != _task or task == -1:
        _task = task
        _shards.clear()
    is_first = shard not in _shards
    _shards.add(shard)
    return is_first
