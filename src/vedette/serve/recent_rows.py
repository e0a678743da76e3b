"""The rows that a monitor accepted last, for charts of values.

Bodies are kept as they were received, which costs the path of rows nothing. They are read when somebody asks, and only
once.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from vedette.data.columns import to_array
from vedette.data.rows import read_rows
from vedette.errors import VedetteError
from vedette.serve.bodies import ARROW, JSON, LINES, RowsOf
from vedette.serve.row_log import Body

KEPT_BYTES = 16 << 20  # of bodies, or of the tables that were read from them


class RecentRows:
    """The last rows of a set: those of the last `most` bytes of bodies, and at least those of the last body."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._bodies: deque[Body] = deque()
        self._n_bytes = 0  # of bodies
        self._read: deque[pa.Table] = deque()  # older than all bodies
        self._lock = threading.Lock()
        self._reading = threading.Lock()  # held for as long as bodies are read

    def append(self, bodies: Iterable[Body]) -> None:
        """Keep the bodies of a step that was accepted."""
        with self._lock:
            for body in bodies:
                self._bodies.append(body)
                self._n_bytes += len(body.data)
            while self._n_bytes > self._most and len(self._bodies) > 1:
                self._n_bytes -= len(self._bodies.popleft().data)
                self._read.clear()

    def tables(self, rows_of: RowsOf) -> list[pa.Table]:
        """The rows, oldest first. The bodies that were not read yet are read by the caller's thread."""
        with self._reading:  # rows are appended meanwhile
            with self._lock:
                fresh, self._bodies, self._n_bytes = self._bodies, deque(), 0
            made: list[pa.Table] = []
            for form, same in groupby(fresh, lambda body: body.form):
                with suppress(VedetteError):  # rows of a schema that the set had before
                    made += _read(form, [body.data for body in same], replace(rows_of, max_rows=sys.maxsize))
            with self._lock:
                self._read.extend(made)
                n_bytes = sum(table.nbytes for table in self._read)
                while n_bytes > self._most and len(self._read) > 1:
                    n_bytes -= self._read.popleft().nbytes
                return list(self._read)

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
