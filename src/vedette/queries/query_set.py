"""The query set: queries over one schema, in one process.

Changes are collected and compiled into a part of their own by the next match. Parts of similar size are merged, so
there are few parts, and a query is compiled only a few times.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes
from vedette.data.boxes import BoxBlock
from vedette.data.ids import Ids
from vedette.data.matches import Matches
from vedette.data.rows import read_row, read_rows
from vedette.data.schema import Schema, check_time_zone
from vedette.errors import QueryError
from vedette.language import Residual, check_text, compile_texts, naming
from vedette.lazy_table import LazyTable
from vedette.native.budget import OverBudgetError, bounded
from vedette.native.damage import check_type
from vedette.native.threads import check_threads, limited
from vedette.queries import content
from vedette.queries.bounds import read_bounds
from vedette.queries.explanation import explain
from vedette.queries.parts import Parts
from vedette.queries.planner import check_index_name
from vedette.queries.query_texts import as_texts
from vedette.queries.read_rows import ReadRows
from vedette.queries.retained import Retained
from vedette.queries.revisions import Revisions
from vedette.queries.selectivity import BROAD_SHARE, Selectivity, read_selectivity
from vedette.queries.set_changes import Changes
from vedette.queries.set_view import SetView
from vedette.queries.versioned_set import VersionedSet
from vedette.queries.versions import NOT_REMOVED, Versions
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.operators.border.monitor import BorderMonitor

FEW_REMOVED = 1024  # removed queries up to this number never cause a compaction
RETAINED_VERSIONS = 10_000  # monitors know removed queries and changed bands for this many versions
ROOM = 16  # a file has room for 1/16 more ids, which a process that maps it adds in place
MANY_CHANGES = 256  # changes from this number on are compiled at once, not by the next match

# The monitor is in a layer above, and is loaded on first use.
_BORDER = LazyTable(
    {
        "BorderMonitor": ("vedette.operators.border.monitor", "BorderMonitor"),
        "MonitorOptions": ("vedette.operators.border.options", "MonitorOptions"),
    }
)
Made = TypeVar("Made")


class QuerySet(VersionedSet):
    """Queries over rows of one schema.

    >>> alerts = QuerySet("symbol string, price double")
    >>> alerts.add("cheap-ibm", "symbol = 'IBM' AND price < 40")
    >>> alerts.match_one({"symbol": "IBM", "price": 39.5})
    ['cheap-ibm']

    With a `sample` of rows, queries that match more than `max_match_share` of it are refused. Neither is saved with
    the set. `time_zone` is the time zone for dates and for timestamps without one. `index` forces one index (see
    `explain`).

    Several threads may read a set at once, but not while it is changed.
    """

    kind = "queries"

    def __init__(
        self,
        schema: str | Schema,
        *,
        time_zone: str = "UTC",
        index: str | None = None,
        sample: Any = None,
        max_match_share: float | None = None,
    ) -> None:
        self.schema = schema if isinstance(schema, Schema) else Schema.parse(schema)
        self.time_zone = check_time_zone(time_zone)
        check_index_name(index)
        self.index = index
        self._ids = Ids()
        self._versions = Versions()
        self._parts = Parts(self.schema, index)
        self.retained_versions = 0  # border monitoring knows removed queries for this many versions
        self._retained = Retained(self.schema)
        self.forgotten_version = 0  # the last version that removed queries without retaining them
        self._leaving: list[NDArray[np.int32]] = []  # positions removed since `_retained` was last updated
        self._shared: dict[Any, Any] = {}
        self._selectivity = read_selectivity(sample, max_match_share, self.schema, self.time_zone)
        self._lock = threading.RLock()  # readers compile pending changes, one at a time

    def __repr__(self) -> str:
        return f"QuerySet({str(self.schema)!r}, {len(self)} queries, version {self.version})"

    @property
    def nbytes(self) -> int:
        """The memory of the compiled set, including ids and versions."""
        return self._ids.nbytes + self._versions.nbytes + self._compiled().nbytes

    @property
    def fields(self) -> list[str]:
        """The fields that the queries use. Rows need no other fields."""
        return self._compiled().fields

    # Changes. Each is applied as a whole under one new version, or raises and changes nothing.

    def add(self, query_id: str | int, text: str) -> None:
        """Add a query. Raises QueryError if its text is invalid or its id already exists."""
        self.add_many([query_id], [text])

    def add_many(self, ids: Sequence[str] | Sequence[int] | Any, texts: Sequence[str] | Any) -> None:
        """Add many queries at once. Texts of one shape are parsed once."""
        read, texts = self._read_new_ids(ids), as_texts(texts)
        if len(read) != len(texts):
            raise QueryError(f"got {len(read)} ids but {len(texts)} texts; each query needs both")
        named = ids if isinstance(ids, (list, tuple)) else read.tolist()
        compiled = compile_texts(texts, self.schema, self.time_zone, ids=named, limits=settings())
        self._append(read, compiled.blocks, compiled.residuals, content.of_texts(texts))

    def add_boxes(self, ids: Any, bounds: Mapping[str, tuple[Any, Any]], closed: str = "both") -> None:
        """Add many boxes at once: by field, arrays of lower and of upper bounds.

        Bounds are inclusive by default. `closed` changes that: "both", "left", "right" or "neither". An infinite or
        null bound means unbounded.
        """
        read = self._read_new_ids(ids)
        blocks = read_bounds(bounds, closed, self.schema, self.time_zone, len(read))
        self._append(read, blocks, [], content.of_blocks(blocks))

    def replace(self, query_id: str | int, text: str) -> None:
        """Replace the text of a query."""
        position = self._must_find(query_id)
        compiled = compile_texts([text], self.schema, self.time_zone, ids=[query_id], limits=settings())
        read = self._ids.read([query_id])
        self._append(read, compiled.blocks, compiled.residuals, content.of_texts([text]), replaced=[position])

    def apply(self, changes: Changes) -> None:
        """Apply the changes of a registry, all at once. Versions and marks are the registry's.

        Border monitoring can refer to every version in between, as if the changes had been applied one by one.
        """
        revisions = Revisions.read(changes, self._ids, self._versions)
        compiled = changes.compiled
        if compiled is None:
            compiled = compile_texts(changes.texts or [], self.schema, self.time_zone, ids=changes.added_ids)
        self._versions.follow(changes.versions, changes.marks)
        first, brief = len(self._versions), np.flatnonzero(revisions.ends < NOT_REMOVED)
        if len(revisions.ids):
            self._ids.append(revisions.ids)
            self._versions.add_at(changes.added_versions)
            self._parts.append(compiled.blocks, compiled.residuals, len(revisions.ids))
        ended = np.concatenate([revisions.ended, (first + brief).astype(np.int32)])
        if len(ended):
            self._drop(ended, np.concatenate([revisions.ended_versions, revisions.ends[brief]]))
            self._parts.note_removal()
        self._settle(len(revisions.ids) + len(ended))

    def compact(self) -> None:
        """Forget removed queries: the others get new positions, and the set is compiled as a whole.

        This happens automatically when more queries are removed than active.
        """
        self._retain()
        is_removed = self._versions.is_removed
        parts = self._parts.without_removed(is_removed)
        self._parts, self._ids, self._versions = parts, self._active_ids(), self._versions.without_removed()

    def check(self, text: str, *, sample: Any = None) -> list[str]:
        """Warnings about a text. Raises QueryError if it is invalid. The set does not change.

        With a `sample` of rows, or the sample of the set, there is a warning if the text matches more of it than the
        set's `max_match_share`, by default a tenth.

        >>> QuerySet("price double").check("price > 5 AND price < 3")
        ['never matches: no value of price lies in all its ranges']
        """
        warnings = check_text(text, self.schema, self.time_zone)
        selectivity = self._selectivity
        if sample is not None:
            share = BROAD_SHARE if selectivity is None else selectivity.max_share
            selectivity = Selectivity.read(sample, share, self.schema, self.time_zone)
        if selectivity is not None:
            warnings += selectivity.warn(compile_texts([text], self.schema, self.time_zone))
        return warnings

    # Answers.

    def match(self, rows: Any, *, threads: int | None = None) -> Matches:
        """The queries that each row matches. `rows`: an Arrow table or batch, pandas, polars, or a dict of arrays.

        `threads` limits the threads that a large batch is cut for, by default the setting threads, else all cores. The
        answer is the same for any number. Raises AnswerError if the answer exceeds the setting max_answer_bytes.
        `match_batches` has no such limit.
        """
        with limited(check_threads(threads)):
            reading = self._read(rows)
            try:
                with bounded(max_answer_bytes()):
                    return self._complete(reading.match())
            except OverBudgetError:  # the answer itself may still be within the limit
                return self._complete(reading.match_in_pieces(max_answer_bytes()))

    def match_batches(
        self, rows: Any, max_bytes: int | None = None, *, threads: int | None = None
    ) -> Iterator[Matches]:
        """The answer of `match` in pieces of consecutive rows. `first_row` is the first row of a piece.

        A piece takes `max_bytes` at most, by default the setting answer_batch_bytes; only a single row may take more.
        With long ids pieces are smaller, so that `to_arrow` can convert them. Do not change the set before the last
        piece.
        """
        most = settings().answer_batch_bytes if max_bytes is None else max_bytes
        for first, _, found in self._read(rows).pieces(most, check_threads(threads)):
            yield from self._complete(found, first).cut_to_convert(max_answer_bytes())

    def find_matches(self, rows: Any) -> Matches:
        """As `match`, with the bound of the caller instead of the limit on answers (see `budget`)."""
        return self._complete(self._read(rows).match())

    def match_one(self, row: Mapping[str, Any]) -> list[str] | list[int]:
        """The ids of the queries that one row matches. A missing field is null, as is None."""
        parts = self._compiled()
        columns = read_row(row, self.schema, parts.fields, self.time_zone)
        with naming(self._ids.at):
            found = parts.match(columns, 1, self._versions.is_removed)
        return self._ids.at(found.positions)

    def explain(self) -> str:
        """A text that says which index serves which queries, and why."""
        return explain(self, self._compiled(), self._versions.is_removed)

    def border(
        self,
        *,
        key: str,
        time: str,
        late: str = "drop",
        null_key: str = "error",
        expire_after: Any = None,
        dwell: Any = None,
        margin: Any = None,
        cross: bool = False,
        threads: int | None = None,
    ) -> BorderMonitor:
        """A monitor of enter and exit events for rows with a key and a time (see docs/operators.md).

        `late`: rows older than the last row of their key are dropped ("drop") or applied ("apply"). `null_key`: a row
        without a key is an error ("error") or is dropped ("drop"). `expire_after`: keys that are silent for longer
        leave. `dwell`: an enter is emitted after this time inside. `margin`: a key leaves only when a value is outside
        by more than this, one number or a dict by field. `cross`: moves that jump over a range are emitted. Durations
        are texts such as "5 minutes", or numbers if the time column is a number. `threads` is that of `match`.
        """
        self.retain()
        options = _BORDER["MonitorOptions"](key, time, late, null_key, expire_after, dwell, margin, cross)
        monitor: BorderMonitor = _BORDER["BorderMonitor"](self, options, threads=threads)
        return monitor

    # The content of a file.

    def _to_content(self) -> dict[str, Any]:
        return {
            "schema": str(self.schema),
            "time_zone": self.time_zone,
            "index": self.index,
            "ids": self._ids.to_parts(len(self._ids) // ROOM),
            "versions": self._versions.to_parts(),
            "parts": self._compiled().compiled,
            "retained": [self.retained_versions, self.forgotten_version, self._retained.to_parts()],
        }

    @classmethod
    def _from_content(cls, saved: dict[str, Any], *, is_checked: bool) -> QuerySet:
        made = cls(saved["schema"], time_zone=saved["time_zone"], index=saved["index"])
        made._read_ids(saved, is_checked=is_checked)
        is_removed = made._versions.is_removed
        made._parts = Parts.of(saved["parts"], made.schema, made.index, is_removed, is_checked=is_checked)
        made.retained_versions, made.forgotten_version, retained = saved["retained"]
        for number in (made.retained_versions, made.forgotten_version):
            check_type(number, int, "the number of retained versions")
        made._retained = Retained.from_parts(made.schema, *retained, is_checked=is_checked)
        return made

    # For monitors.

    def retain(self, versions: int = RETAINED_VERSIONS) -> None:
        """Keep queries that are removed or replaced from now on for border monitoring, for this many versions.

        `border` calls this. A program that continues from a saved state calls it before it changes the set.
        """
        self.retained_versions = max(self.retained_versions, versions)

    def view(self) -> SetView:
        """The set as a step of a monitor sees it."""
        return SetView(self._compiled(), self._versions, self._ids, self._retained, self.retained_versions)

    def shared(self, make: Callable[[], Made]) -> Made:
        """An object that monitors of this set derive from it and share. Each `make` is called once."""
        if make not in self._shared:
            self._shared[make] = make()
        made: Made = self._shared[make]
        return made

    # Inside.

    def _read(self, rows: Any) -> ReadRows:
        parts = self._compiled()
        return ReadRows(
            parts, *read_rows(rows, self.schema, parts.fields, self.time_zone), self._versions.is_removed, self._ids
        )

    def _complete(self, found: Matches, first_row: int = 0) -> Matches:
        """Matches with the ids of the queries."""
        has_removed = self._versions.n_removed > 0
        return Matches(found.starts, found.positions, self.ids, has_removed, found.n_failed, first_row)

    def _compiled(self) -> Parts:
        with self._lock:
            self._retain()
            self._parts.compile(self._versions.is_removed)
            return self._parts

    def _retain(self) -> None:
        """Retain recently removed queries before the parts drop them."""
        if not self._leaving:
            return
        positions = np.concatenate(self._leaving)
        self._leaving = []
        is_leaving = np.zeros(len(self._versions), np.bool_)
        is_leaving[positions] = True
        numbers = np.cumsum(is_leaving) - 1
        blocks, residuals = self._parts.extract(is_leaving)
        positions = np.flatnonzero(is_leaving).astype(np.int32)
        self._retained.forget(self.version - self.retained_versions)
        self._retained.keep(
            self._ids.take(positions),
            self._versions.added_at(positions),
            self._versions.removed_at(positions),
            [BoxBlock(numbers[block.queries], block.ranges) for block in blocks],
            [dataclasses.replace(each, queries=numbers[each.queries]) for each in residuals],
        )

    def _settle(self, n_changed: int) -> None:
        """After a change: compact if most queries are removed, and compile now if there are many changes."""
        if self._versions.n_removed > max(self._versions.n_active, FEW_REMOVED):
            self.compact()
        elif n_changed >= MANY_CHANGES and self._parts.is_mostly_compiled:
            self._compiled()

    def _append(
        self,
        ids: NDArray[np.int64] | pa.LargeStringArray,
        blocks: Iterable[BoxBlock],
        residuals: Iterable[Residual],
        pieces: Iterable[Any],
        replaced: Sequence[int] = (),
    ) -> None:
        if not len(ids):
            return
        if self._selectivity is not None:
            blocks, residuals = list(blocks), list(residuals)
            self._selectivity.check(ids, blocks, residuals)
        self._versions.advance([*content.of_ids(ids), *pieces])
        if replaced:
            self._drop(np.array(replaced, np.int32))
        self._ids.append(ids)
        self._versions.add(len(ids))
        self._parts.append(blocks, residuals, len(ids))
        self._settle(len(ids))

    def _remove(self, positions: NDArray[np.int32]) -> None:
        self._versions.advance(content.of_ids(self._ids.take(positions)))
        self._drop(positions)
        self._parts.note_removal()
        self._settle(len(positions))

    def _drop(self, positions: NDArray[np.int32], versions: NDArray[np.int64] | None = None) -> None:
        self._versions.remove(positions, versions)
        if self.retained_versions:
            self._leaving.append(positions)
        else:
            self.forgotten_version = self.version if versions is None else int(versions.max())
