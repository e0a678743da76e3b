"""The rows that a monitor accepted last, for charts of values, and as a sample for new queries.

Bodies are kept as they were received, which costs the path of rows nothing. They are read when somebody asks, and only
once.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.columns import to_array
from vedette.data.rows import read_rows
from vedette.errors import VedetteError
from vedette.serve.bodies import ARROW, JSON, LINES, RowsOf
from vedette.serve.row_log import Body

KEPT_BYTES = 16 << 20  # of bodies, or of the tables that were read from them
_BODY_BYTES = 200  # of a body besides its data: the objects around it
_SAMPLE_ROWS = 1000
_SAMPLE_BYTES = 1 << 20  # of the bodies that a sample is taken from
_SAMPLE_SECONDS = 5.0  # for which a sample is used again, while rows come


class RecentRows:
    """The last rows of a set: those of the last `most` bytes of memory, and at least those of the last body."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._bodies: deque[Body] = deque()
        self._n_bytes = 0  # of bodies
        self._n_appended = 0  # bodies, ever
        self._sample: tuple[int, float, pa.Table] | None = None  # the bodies before it, when it was taken, and its rows
        self._read: deque[pa.Table] = deque()  # older than all bodies
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # held for as long as bodies are read

    def __bool__(self) -> bool:
        return self._n_appended > 0

    def append(self, bodies: Iterable[Body]) -> None:
        """Keep the bodies of a step that was accepted."""
        with self._lock:
            for body in bodies:
                self._bodies.append(body)
                self._n_bytes += len(body.data) + _BODY_BYTES
                self._n_appended += 1
            while self._n_bytes > self._most and len(self._bodies) > 1:
                self._n_bytes -= len(self._bodies.popleft().data) + _BODY_BYTES
                self._read.clear()

    def tables(self, rows_of: RowsOf) -> list[pa.Table]:
        """The rows, oldest first. The bodies that were not read yet are read by the caller's thread."""
        with self._reading:  # rows are appended meanwhile
            with self._lock:
                fresh, self._bodies, self._n_bytes = self._bodies, deque(), 0
            made = _read_all(fresh, rows_of)
            with self._lock:
                self._read.extend(made)
                n_bytes = sum(table.nbytes for table in self._read)
                while n_bytes > self._most and len(self._read) > 1:
                    n_bytes -= self._read.popleft().nbytes
                return list(self._read)

    def sample(self, rows_of: RowsOf) -> pa.Table | None:
        """About a thousand of the last rows, evenly spaced. None if there are none."""
        with self._lock:
            known, n_appended = self._sample, self._n_appended
            is_fresh = known is not None and time.monotonic() < known[1] + _SAMPLE_SECONDS
            if known is not None and (known[0] == n_appended or (is_fresh and known[2].num_rows >= _SAMPLE_ROWS)):
                return known[2]
            bodies, older = _newest(self._bodies), list(self._read)
        read = _read_all(bodies, rows_of)
        n_rows = sum(table.num_rows for table in read)
        while older and n_rows < _SAMPLE_ROWS:
            read.insert(0, older.pop())
            n_rows += read[0].num_rows
        if not n_rows:
            return None
        try:
            rows = pa.concat_tables(read, promote_options="permissive")
        except pa.ArrowException:  # columns of other types
            rows = max(read, key=len)
        n = min(_SAMPLE_ROWS, rows.num_rows)
        sample = rows.take(np.linspace(0, rows.num_rows - 1, n).astype(np.int64))
        with self._lock:
            self._sample = n_appended, time.monotonic(), sample
        return sample

    def values(self, rows_of: RowsOf, names: list[str], key: str, wanted: object, limit: int) -> pa.Table:
        """Columns of the last rows of a key, oldest first."""
        found: list[pa.Table] = []
        n_found = 0
        for table in reversed(self.tables(rows_of)):
            if n_found >= limit:
                break
            with suppress(VedetteError):  # rows without the field, or of a schema that the set had before
                own = _columns(table, [key, *names], rows_of)
                is_it = pc.equal(own[key].cast(pa.string()), pa.scalar(str(wanted)))
                found.append(own.filter(is_it).select(names))
                n_found += found[-1].num_rows
        if not found:
            return pa.table({name: pa.nulls(0) for name in names})
        joined = pa.concat_tables(reversed(found))
        return joined.slice(max(0, joined.num_rows - limit))


def _newest(bodies: deque[Body]) -> list[Body]:
    """The last bodies of about a mebibyte, oldest first; at least one."""
    n_bytes, newest = 0, list[Body]()
    for body in reversed(bodies):
        n_bytes += len(body.data)
        if newest and n_bytes > _SAMPLE_BYTES:
            break
        newest.append(body)
    return newest[::-1]


def _read_all(bodies: Iterable[Body], rows_of: RowsOf) -> list[pa.Table]:
    """The tables of bodies, without those of a schema that the set had before."""
    made: list[pa.Table] = []
    for form, same in groupby(bodies, lambda body: body.form):
        with suppress(VedetteError):
            made += _read(form, [body.data for body in same], replace(rows_of, max_rows=sys.maxsize))
    return made


def _columns(table: pa.Table, names: list[str], rows_of: RowsOf) -> pa.Table:
    """Fields in the types of the schema, as queries see them. Raises RowError if the rows do not have them."""
    columns, _ = read_rows(table, rows_of.schema, dict.fromkeys(names), rows_of.time_zone)
    fields = [field for field in rows_of.schema if field.name in columns]
    return pa.table({field.name: to_array(columns[field.name], field.type) for field in fields})


def _read(form: int, bodies: list[bytes], rows_of: RowsOf) -> list[pa.Table]:
    """The tables of bodies that were accepted before. Many small ones of JSON are read as one."""
    if form == ARROW:
        return [rows_of.to_table(rows_of.read(ARROW, body)) for body in bodies]
    if form == LINES:
        return [rows_of.to_table(rows_of.read(LINES, b"\n".join(bodies)))]
    lists = [body.strip() for body in bodies]
    inner = [body[1:-1] if body.startswith(b"[") else body for body in lists]
    joined = b"[" + b",".join(each for each in inner if each.strip()) + b"]"
    return [rows_of.to_table(rows_of.read(JSON, joined))]
