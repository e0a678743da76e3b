"""The query set: queries over one schema, in one process.

Changes are collected and compiled into a part of their own by the next match. Parts of similar size are merged, so
there are few parts, and a query is compiled only a few times.
"""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes
from vedette.data.boxes import BoxBlock
from vedette.data.ids import Ids
from vedette.data.matches import Matches
from vedette.data.moments import is_virtual, needed_fields, read_moment, with_moment
from vedette.data.rows import read_row, read_rows
from vedette.data.schema import Schema, check_time_zone
from vedette.errors import QueryError
from vedette.language import Residual, check_text, compile_texts, condition_of_boxes, condition_of_text, naming
from vedette.lazy_table import LazyTable
from vedette.native.budget import OverBudgetError, bounded
from vedette.native.damage import check_type
from vedette.native.threads import check_threads, limited
from vedette.queries import content
from vedette.queries.attributes import Attributes
from vedette.queries.bounds import read_bounds
from vedette.queries.explanation import explain
from vedette.queries.metadata import write_metadata
from vedette.queries.parts import Parts
from vedette.queries.planner import check_index_name
from vedette.queries.query_options import to_number
from vedette.queries.query_texts import QueryTexts, as_texts
from vedette.queries.read_rows import ReadRows
from vedette.queries.retained import Retained
from vedette.queries.revisions import Revisions
from vedette.queries.selectivity import BROAD_SHARE, Selectivity, read_selectivity
from vedette.queries.set_changes import Changes
from vedette.queries.set_view import SetView
from vedette.queries.versioned_set import VersionedSet
from vedette.queries.versions import NOT_REMOVED, Versions
from vedette.queries.why import Why, explain_row
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
    `explain`). `name` is part of the ids of events, so that two sets with the same queries have different ones.

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
        name: str = "",
    ) -> None:
        self.name = name
        self.schema = schema if isinstance(schema, Schema) else Schema.parse(schema)
        self.time_zone = check_time_zone(time_zone)
        check_index_name(index)
        self.index = index
        self._ids = Ids()
        self._versions = Versions()
        self._attributes = Attributes()  # by position
        self._parts = Parts(self.schema, index)
        self._texts = QueryTexts()
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

    @property
    def uses_now(self) -> bool:
        """Whether an answer depends on the moment, because a query calls `now()`."""
        return bool(self._compiled().moments)

    # Changes. Each is applied as a whole under one new version, or raises and changes nothing.

    def add(self, query_id: str | int, text: str, *, metadata: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Add a query. Raises QueryError if its text is invalid or its id already exists.

        `metadata` is a dict that answers can carry. `options` are those of border monitoring that a query has itself:
        `dwell`, `margin`, `expire_after`, `cooldown` and `once`; without one, that of the monitor applies.
        """
        self.add_many([query_id], [text], metadata=metadata, **options)

    def add_many(
        self,
        ids: Sequence[str] | Sequence[int] | Any,
        texts: Sequence[str] | Any,
        *,
        metadata: Any = None,
        **options: Any,
    ) -> None:
        """Add many queries at once. Texts of one shape are parsed once.

        `metadata` and each of the options is one value for all queries, or a sequence with one per query.
        """
        read, texts = self._read_new_ids(ids), as_texts(texts)
        if len(read) != len(texts):
            raise QueryError(f"got {len(read)} ids but {len(texts)} texts; each query needs both")
        named = ids if isinstance(ids, (list, tuple)) else read.tolist()
        compiled = compile_texts(texts, self.schema, self.time_zone, ids=named, limits=settings())
        attributes = Attributes.of_columns(len(read), options, write_metadata(metadata, named))
        self._append(read, compiled.blocks, compiled.residuals, content.of_texts(texts), texts, attributes=attributes)

    def add_boxes(
        self,
        ids: Any,
        bounds: Mapping[str, tuple[Any, Any]],
        closed: str = "both",
        *,
        metadata: Any = None,
        **options: Any,
    ) -> None:
        """Add many boxes at once: by field, arrays of lower and of upper bounds.

        Bounds are inclusive by default. `closed` changes that: "both", "left", "right" or "neither". An infinite or
        null bound means unbounded. `metadata` and `options` are those of `add_many`.
        """
        read = self._read_new_ids(ids)
        blocks = read_bounds(bounds, closed, self.schema, self.time_zone, len(read))
        attributes = Attributes.of_columns(len(read), options, write_metadata(metadata, list(read)))
        self._append(read, blocks, [], content.of_blocks(blocks), [None] * len(read), attributes=attributes)

    def replace(
        self, query_id: str | int, text: str, *, metadata: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        """Replace the text of a query. It keeps the metadata and the options that are not given."""
        position = self._must_find(query_id)
        (known,) = self._attributes.metadata_at(np.array([position]))
        texts = write_metadata(known if metadata is None else metadata, [query_id])
        given = {name: value for name, value in options.items() if value is not None}
        attributes = Attributes.of_columns(1, self._attributes.options_at(position) | given, texts)
        compiled = compile_texts([text], self.schema, self.time_zone, ids=[query_id], limits=settings())
        read = self._ids.read([query_id])
        pieces = content.of_texts([text])
        self._append(read, compiled.blocks, compiled.residuals, pieces, [text], [position], attributes)

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
            self._texts.append(changes.texts or [None] * len(revisions.ids))
            self._attributes.append(Attributes.of_texts(len(revisions.ids), changes.options, changes.metadata))
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
        parts, self._texts = self._parts.without_removed(is_removed), self._texts.without(is_removed)
        self._attributes = self._attributes.take(np.flatnonzero(~is_removed))
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

    def has_option(self, name: str, value: Any = None) -> bool:
        """Whether some query has this option itself, or has it with this value."""
        numbers = self._attributes.numbers(name)
        return numbers is not None and (value is None or bool((numbers == to_number(name, value)[0]).any()))

    def without_metadata(self) -> QuerySet:
        """A set of the same queries without their metadata, to be sent elsewhere. It must not be changed."""
        if not self._attributes.has_metadata and not self._retained.attributes.has_metadata:
            return self
        with self._lock:
            self._compiled()
            made = copy.copy(self)
            made._attributes = self._attributes.without_metadata()
            made._retained = copy.copy(self._retained)
            made._retained.attributes = self._retained.attributes.without_metadata()
            return made

    # Answers.

    def match(self, rows: Any, *, now: datetime | None = None, threads: int | None = None) -> Matches:
        """The queries that each row matches. `rows`: an Arrow table or batch, pandas, polars, or a dict of arrays.

        `threads` limits the threads that a large batch is cut for, by default the setting threads, else all cores. The
        answer is the same for any number. `now` is the moment that `now()` means, by default that of the clock; without
        a time zone it is in that of the set. Raises AnswerError if the answer exceeds the setting max_answer_bytes.
        `match_batches` has no such limit.
        """
        with limited(check_threads(threads)):
            reading = self._read(rows, now)
            try:
                with bounded(max_answer_bytes()):
                    return self._complete(reading.match())
            except OverBudgetError:  # the answer itself may still be within the limit
                return self._complete(reading.match_in_pieces(max_answer_bytes()))

    def match_batches(
        self, rows: Any, max_bytes: int | None = None, *, now: datetime | None = None, threads: int | None = None
    ) -> Iterator[Matches]:
        """The answer of `match` in pieces of consecutive rows. `first_row` is the first row of a piece.

        A piece takes `max_bytes` at most, by default the setting answer_batch_bytes; only a single row may take more.
        With long ids pieces are smaller, so that `to_arrow` can convert them. Do not change the set before the last
        piece.
        """
        most = settings().answer_batch_bytes if max_bytes is None else max_bytes
        for first, _, found in self._read(rows, now).pieces(most, check_threads(threads)):
            yield from self._complete(found, first).cut_to_convert(max_answer_bytes())

    def find_matches(self, rows: Any, now: datetime | NDArray[np.int64] | None = None) -> Matches:
        """As `match`, with the bound of the caller instead of the limit on answers (see `budget`).

        `now` may be an array: the moment of each row, in microseconds since 1970.
        """
        return self._complete(self._read(rows, now).match())

    def match_one(self, row: Mapping[str, Any], *, now: datetime | None = None) -> list[str] | list[int]:
        """The ids of the queries that one row matches. A missing field is null, as is None. `now`: see `match`."""
        parts = self._compiled()
        columns = read_row(row, self.schema, parts.fields, self.time_zone)
        if parts.moments:
            columns = with_moment(columns, parts.moments, read_moment(now, self.time_zone), 1)
        with naming(self._ids.at):
            found = parts.match(columns, 1, self._versions.is_removed)
        return self._ids.at(found.positions)

    def why(self, query_id: str | int, row: Mapping[str, Any], *, now: datetime | None = None) -> Why:
        """Why one row matches a query, or does not: the condition clause by clause, with the row's values.

        Clauses are those of the query's text. A query without one (from `add_boxes`, or of a set that was loaded from
        a file) is shown by its boxes. `row` and `now`: see `match_one`.
        """
        condition, text = self.condition_of(query_id)
        columns = read_row(row, self.schema, set(needed_fields(condition.fields)), self.time_zone)
        moments = [name for name in condition.fields if is_virtual(self.schema, name)]
        if moments:
            columns = with_moment(columns, moments, read_moment(now, self.time_zone), 1)
        return explain_row(query_id, condition, columns, text)

    def condition_of(self, query_id: str | int) -> tuple[Residual, str | None]:
        """The whole condition of a query, and its text, if that is known."""
        position = self._must_find(query_id)
        text = self._texts.at(position)
        if text is not None:
            return condition_of_text(text, self.schema, self.time_zone), text
        is_wanted = np.arange(len(self._versions)) == position
        blocks, residuals = self._parts.extract(is_wanted)
        return condition_of_boxes(blocks, residuals, self.schema, self.time_zone), None

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
        columns: Sequence[str] | None = None,
        event_id: bool | None = None,
        metadata: Sequence[str] | None = None,
        cooldown: Any = None,
        once: bool | str = False,
        held_back: bool | None = None,
        threads: int | None = None,
    ) -> BorderMonitor:
        """A monitor of enter and exit events for rows with a key and a time (see docs/operators.md).

        `late`: rows older than the last row of their key are dropped ("drop") or applied ("apply"). `null_key`: a row
        without a key is an error ("error") or is dropped ("drop"). `expire_after`: keys that are silent for longer
        leave. `dwell`: an enter is emitted after this time inside. `margin`: a key leaves only when a value is outside
        by more than this, one number or a dict by field. `cross`: moves that jump over a range are emitted. Durations
        are texts such as "5 minutes", or numbers if the time column is a number. `columns`: events have these columns
        of the row that caused them, or of the key's last row if time did. `metadata`: events have these fields of the
        query's metadata, as texts. `event_id`: events have a stable id, by default if they have `columns` or
        `metadata`. `cooldown`: after an enter, further enters of the key into the query, and their exits, are held back
        for this time, and the next event says in `held_back` how many were. `once`: only the first enter of a key into
        a query is reported; with "query", only the first enter of any key, and the query is then removed from the set.
        `held_back` adds or omits that column; by default it is there if something can be held back. A query's own
        options override these. `threads` is that of `match`.
        """
        self.retain()
        options = _BORDER["MonitorOptions"](
            key,
            time,
            late,
            null_key,
            expire_after,
            dwell,
            margin,
            cross,
            columns,
            event_id,
            metadata,
            cooldown,
            once,
            held_back,
        )
        monitor: BorderMonitor = _BORDER["BorderMonitor"](self, options, threads=threads)
        return monitor

    # The content of a file.

    def _to_content(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "schema": str(self.schema),
            "time_zone": self.time_zone,
            "index": self.index,
            "ids": self._ids.to_parts(len(self._ids) // ROOM),
            "versions": self._versions.to_parts(),
            "parts": self._compiled().compiled,
            "attributes": self._attributes.to_parts(),
            "retained": [self.retained_versions, self.forgotten_version, self._retained.to_parts()],
        }

    @classmethod
    def _from_content(cls, saved: dict[str, Any], *, is_checked: bool) -> QuerySet:
        name = saved.get("name", "")
        check_type(name, str, "the name of a set")
        made = cls(saved["schema"], time_zone=saved["time_zone"], index=saved["index"], name=name)
        made._read_ids(saved, is_checked=is_checked)
        made._texts = QueryTexts(len(made._ids))
        is_removed = made._versions.is_removed
        made._parts = Parts.of(saved["parts"], made.schema, made.index, is_removed, is_checked=is_checked)
        made._read_attributes(saved, is_checked=is_checked)
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
        parts = self._compiled()
        return SetView(parts, self._versions, self._ids, self._retained, self.retained_versions, self._attributes)

    def shared(self, make: Callable[[], Made]) -> Made:
        """An object that monitors of this set derive from it and share. Each `make` is called once."""
        if make not in self._shared:
            self._shared[make] = make()
        made: Made = self._shared[make]
        return made

    # Inside.

    def _read(self, rows: Any, now: datetime | NDArray[np.int64] | None) -> ReadRows:
        parts = self._compiled()
        columns, n_rows = read_rows(rows, self.schema, parts.fields, self.time_zone)
        if parts.moments:
            moments = now if isinstance(now, np.ndarray) else read_moment(now, self.time_zone)
            columns = with_moment(columns, parts.moments, moments, n_rows)
        return ReadRows(parts, columns, n_rows, self._versions.is_removed, self._ids)

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
            self._attributes.take(positions),
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
        texts: Sequence[str | None],
        replaced: Sequence[int] = (),
        attributes: Attributes | None = None,
    ) -> None:
        if not len(ids):
            return
        if self._selectivity is not None:
            blocks, residuals = list(blocks), list(residuals)
            self._selectivity.check(ids, blocks, residuals)
        attributes = Attributes(len(ids)) if attributes is None else attributes
        self._versions.advance([*content.of_ids(ids), *pieces, *attributes.content()])
        if replaced:
            self._drop(np.array(replaced, np.int32))
        self._ids.append(ids)
        self._versions.add(len(ids))
        self._parts.append(blocks, residuals, len(ids))
        self._texts.append(texts)
        self._attributes.append(attributes)
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
