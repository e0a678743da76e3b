"""The operator of window joins: joins new rows of several streams. See docs/operators.md for its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.answer_limit import max_answer_bytes, too_large
from vedette.data.columns import Column
from vedette.data.keyed_rows import KEY_TYPES, MAX_TIME, TIME_TYPES, read_time
from vedette.data.matches import Matches
from vedette.data.schema import Type
from vedette.errors import AnswerError, QueryError, RowError, count
from vedette.language import naming
from vedette.native.threads import check_threads, limited
from vedette.operators.side_columns import Rows, concat_rows
from vedette.operators.window_join.group import Share
from vedette.operators.window_join.join import Batch, WindowJoin, horizon_of
from vedette.operators.window_join.options import JoinOptions
from vedette.operators.window_join.pair_details import StepDetails
from vedette.operators.window_join.pair_sink import JoinedRows
from vedette.operators.window_join.range_index import index_ranges
from vedette.operators.window_join.rows import JoinRows, read_join_rows
from vedette.operators.window_join.state import JoinState
from vedette.operators.window_join.table import drop_repeats, join_values, to_table
from vedette.operators.window_join.undo import JoinUndo
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.operators.window_join.branches import Branches, Signature
    from vedette.operators.window_join.query_set import JoinQuerySet

ROWS_AT_ONCE = 4096  # or as many as are kept, if that is more
PAIRS_AT_ONCE = 1 << 20  # pairs whose residuals are checked together
_MAX_NUMBER = (1 << 31) - 1

_STATE = JoinState()


class JoinMonitor:
    """Joins new rows of several streams with the rows in their windows.

    >>> from vedette import JoinQuerySet
    >>> pairs = JoinQuerySet(orders="id string, price double", offers="id string, price double")
    >>> pairs.add("cheaper", "offers.price < orders.price", within=10)
    >>> join = pairs.window(orders_time="at", offers_time="at", orders_id="id", offers_id="id")
    >>> join.step(orders={"id": ["a"], "price": [9.5], "at": [1]}).num_rows
    0
    >>> join.step(offers={"id": ["x", "y"], "price": [9.0, 9.0], "at": [11, 12]}).to_pylist()
    [{'query': 'cheaper', 'orders': 'a', 'offers': 'x'}]
    """

    def __init__(self, queries: JoinQuerySet, options: JoinOptions, *, threads: int | None = None) -> None:
        self.threads = check_threads(threads)
        self.queries = queries
        self.options = options
        self.n_rebuilt = 0  # how often all lists were built from the rows
        self.time_type = "" if options.has_times else "bigint"
        for stream, time in zip(queries.streams, options.times, strict=True):
            field = None if time is None else queries.schema_of(stream).find(time)
            if field is not None and field.type.widest.name not in TIME_TYPES:
                raise QueryError(
                    f"{time!r} is {field.type}; a time must be a timestamp or a number (bigint or double)",
                    option=f"{stream}_time",
                )
            if field is not None and self.time_type not in ("", field.type.widest.name):
                raise QueryError(
                    f"{time!r} is {field.type}, but the times of another stream are {self.time_type}; use one type",
                    option=f"{stream}_time",
                )
            if field is not None:
                self._check_windows(field.type.widest.name)
                self.time_type = field.type.widest.name
        if not options.has_times:
            self._check_windows("")
        for stream, id_ in zip(queries.streams, options.ids, strict=True):
            type_ = self._known_id_type(stream, id_)
            if type_ is not None and type_.name not in KEY_TYPES:
                raise QueryError(f"{id_!r} is {type_}; an id must be a string or a whole number", option=f"{stream}_id")
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self._begun: JoinUndo | None = None  # an unfinished step
        streams = self.queries.streams
        self.id_types = [self._known_id_type(*each) for each in zip(streams, self.options.ids, strict=True)]
        self.n_late = 0
        self.late_rows = [0] * len(streams)  # by stream, since the monitor was made or loaded
        self.n_numbered = [0] * len(streams)  # rows that got a number, or an id, by stream
        self.join = self.make_join()
        self.followed: tuple[int, int] | None = None  # the epoch and version of the queries in the join
        self.is_behind = False  # the lists of the join lack rows of a state or delta
        self.saved_rows: list[int] | None = None  # by stream, the next row when the state was last saved
        self.longest: list[Any] = [-1] * len(streams)  # by stream, the longest window of time; below 0 for no window
        self.most = [0] * len(streams)  # by stream, the largest window that counts rows

    def __repr__(self) -> str:
        streams, queries = ", ".join(self.queries.streams), count(len(self.queries), "query", "queries")
        return f"JoinMonitor({streams}; {queries}, {count(self.n_rows, 'row')} kept)"

    @property
    def n_rows(self) -> int:
        """The number of kept rows of all streams."""
        return self.join.n_rows

    @property
    def n_failed(self) -> int:
        """The number of rows and pairs for which an expression failed, such as a division by zero."""
        return self.join.n_failed

    @property
    def nbytes(self) -> int:
        """The memory of the state, without the queries."""
        return self.join.nbytes

    @property
    def state_nbytes(self) -> int:
        """As `nbytes`: monitors of one set share only the queries."""
        return self.nbytes

    def step(self, **rows: Any) -> pa.Table:
        """The pairs of new rows: the column query, and for each stream the id of the row.

        Rows are processed by time, then by stream, then by id. A pair is reported once for each query, with the later
        of its rows. Raises AnswerError, and changes nothing, if the pairs exceed the setting max_answer_bytes.
        `step_batches` has no such limit.
        """
        (found,) = self._step(rows, max_answer_bytes(), is_whole=True)
        return found

    def step_batches(self, max_bytes: int | None = None, /, **rows: Any) -> Iterator[pa.Table]:
        """The pairs of `step` in pieces of about `max_bytes`, by default the setting answer_batch_bytes.

        Read all pieces before the next call: the step ends with the last one. If the iteration stops earlier, the step
        is undone.
        """
        most = settings().answer_batch_bytes if max_bytes is None else max_bytes
        return self._step(rows, most, is_whole=False)

    def _step(self, rows: dict[str, Any], most: int, *, is_whole: bool) -> Iterator[pa.Table]:
        """The pairs in tables of about `most` bytes. With `is_whole` they are one table, or AnswerError is raised."""
        undo = JoinUndo(self)
        batches = self._take_rows(rows)
        if batches is None:
            none = JoinedRows.concat([], len(self.queries.streams))
            yield self._to_table(none, {}, self._all_ids([]), StepDetails(self, []))
            return
        self._begun = undo
        try:
            yield from self._join_parts(self._cut(batches), batches, most, is_whole)
        except BaseException:
            if self._begun is undo:  # otherwise another step has begun since
                undo.apply(self)
            raise

    def _take_rows(self, rows: dict[str, Any]) -> list[Batch] | None:
        """The new rows in order, numbered. None if there was no row yet and the type of times is unknown."""
        known_type = self.time_type
        read = self._read(rows)
        if self.options.has_times and not self.time_type:
            return None
        self.follow()
        kept = [self._on_time(number, each) for number, each in enumerate(read)]
        dtype = TIME_TYPES[self.time_type]
        batches = [
            each.in_order(mask, self.n_numbered[number], dtype, by_time=self.options.has_times)
            for number, (each, mask) in enumerate(zip(read, kept, strict=True))
        ]
        try:
            self._check_room(batches)
        except RowError:
            if not known_type:  # there was no row yet
                self.time_type = ""
                self.clear()
            raise
        for number, each in enumerate(read):
            self.n_numbered[number] += each.n
            n_late = each.n - len(batches[number])
            self.n_late += n_late
            self.late_rows[number] += n_late
            if each.n:
                self.id_types[number] = batches[number].id_type
        return batches

    def _join_parts(
        self, parts: list[list[Batch]], batches: list[Batch], most: int, is_whole: bool
    ) -> Iterator[pa.Table]:
        bases = [stream.first for stream in self.join.streams]
        ids = self._all_ids(batches) if len(parts) > 1 else []
        details = StepDetails(self, batches)
        found: list[JoinedRows] = []
        found_rows: list[Rows] = []
        n_bytes = 0
        for part in parts:
            pieces = self._find_once(part, bases, most, is_whole)
            for pairs, rows, n_more in details.find(pieces, most, is_whole=is_whole):
                if is_whole and n_bytes + n_more > most:
                    raise _too_large(sum(map(len, found)) + len(pairs))
                if found and n_bytes + n_more > most:
                    known = ids or self._all_ids([])
                    yield self._to_table(
                        JoinedRows.concat(found, len(batches)), concat_rows(found_rows), known, details
                    )
                    found, found_rows, n_bytes = [], [], 0
                found.append(pairs)
                found_rows.append(rows)
                n_bytes += n_more
            if len(parts) == 1:
                ids = self._all_ids([])
            self.join.expire(self.longest, self.most)
        pairs = JoinedRows.concat(found, len(batches))
        if self.join.has_too_many_codes():
            self._build_lists(self.queries.groups())
        self._begun = None  # from here on the step cannot be undone
        yield self._to_table(pairs, concat_rows(found_rows), ids, details)

    def _to_table(self, pairs: JoinedRows, rows: Rows, ids: Sequence[Column], details: StepDetails) -> pa.Table:
        return details.add_to(to_table(pairs, self.queries, ids), pairs, rows, ids)

    def _find_once(self, part: list[Batch], bases: Sequence[int], most: int, is_whole: bool) -> Iterator[JoinedRows]:
        """The pairs of a part of the rows, each once per query, even if two branches of a query find it.

        Repeats have the same new row and the same query, so they are in the same share of the part.
        """
        with naming(self.queries.ids_at), limited(self.threads):
            waiting = self.join.insert(part, self._select, bases)[::-1]
        is_repeated = self.queries.is_repeated
        has_repeats = bool(is_repeated.any())
        while waiting:
            share = waiting.pop()
            if not has_repeats:
                yield from self._find(share, bases, most)
                continue
            halves = [] if is_whole else share.halves(len(is_repeated))
            pairs = self._find_distinct(share, bases, most, is_whole=is_whole, can_be_cut=bool(halves))
            if pairs is None:
                waiting += halves[::-1]
            elif len(pairs):
                yield pairs
        self.join.finish()

    def _find_distinct(
        self, share: Share, bases: Sequence[int], most: int, *, is_whole: bool, can_be_cut: bool
    ) -> JoinedRows | None:
        """The pairs of a share, each once per query. None if they exceed `most` bytes and the share can be cut.

        With `is_whole`, AnswerError if they take more.
        """
        found: list[JoinedRows] = []
        n_streams, n_failed, n_bytes, room = len(self.queries.streams), self.join.n_failed, 0, 2 * most
        for pairs in self._find(share, bases, most):
            found.append(pairs)
            n_bytes += pairs.nbytes
            if n_bytes > room:
                found = [drop_repeats(JoinedRows.concat(found, n_streams), self.queries)]
                n_bytes = found[0].nbytes
                if n_bytes > most and is_whole:
                    raise _too_large(len(found[0]))
                if n_bytes > most and can_be_cut:
                    self.join.n_failed = n_failed  # the parts of the share count again
                    return None
                room = 2 * max(most, n_bytes)
        return drop_repeats(JoinedRows.concat(found, n_streams), self.queries)

    def _find(self, share: Share, bases: Sequence[int], most: int) -> Iterator[JoinedRows]:
        """The pairs of a share of the rows for which the residuals are true."""
        pieces = self.join.find(share, most)
        while True:
            with naming(self.queries.ids_at), limited(self.threads):
                found = next(pieces, None)
                if found is None:
                    return
                checked = self._check_residuals(found, bases)
            if len(checked):
                yield checked

    def advance(self, time: Any = None, /, **times: Any) -> None:
        """Declare that later rows of all streams are not before a time. Rows that expire are dropped.

        `advance(left=t)` declares it for one stream only. The call has no effect before the first row, unless the type
        of times is known from the schema.
        """
        named = {self._number(stream): each for stream, each in times.items()}
        if time is not None:
            named |= {number: time for number in range(len(self.queries.streams)) if number not in named}
        if not self.time_type or not self.options.has_times:
            return
        read = {number: read_time(each, self.time_type, self.queries.time_zone) for number, each in named.items()}
        last = np.finfo(np.float64).max if self.time_type == "double" else MAX_TIME - 1  # the last possible time
        self.follow()
        for number, each in read.items():
            self.join.advance(number, min(max(each, -last), last))
        self.join.expire(self.longest, self.most)

    # Saving.

    def save(self) -> bytes:
        """The whole state."""
        return _STATE.save(self)

    def load(self, blob: bytes) -> None:
        """Replace this state by a saved one. Raises SnapshotError, and changes nothing, if it does not fit."""
        _STATE.load(self, blob)

    def take_delta(self) -> bytes:
        """The changes of the state since the last `save`, `load` or `take_delta`."""
        return _STATE.take_delta(self)

    def apply_delta(self, blob: bytes) -> None:
        """Update a loaded state. Apply deltas in the order in which they were taken."""
        _STATE.apply_delta(self, blob)

    # Inside.

    def follow(self) -> None:
        """Use the queries of the set's current version."""
        now = (self.queries.epoch, self.queries.version)
        if self.followed == now and not self.is_behind:
            return
        if self.followed != now:
            self._check_windows(self.time_type if self.options.has_times else "")
        if self.followed is not None and not self.is_behind:  # the rows of a state expired before it was saved
            self.join.expire(self.longest, self.most)  # a new query sees the rows that earlier queries kept
        for number, stream in enumerate(self.join.streams):
            if stream.use_fields(self._types_of(number)):
                self.saved_rows = None  # a delta cannot express it
        groups = self.queries.groups()
        if self.followed is None or self.followed[0] != now[0]:
            self._build_lists(groups)
        else:
            self.join.list_rows(self._select)  # first, because new lists are filled from rows with keys
            self.join.follow(groups, self._select)
        self.followed, self.is_behind = now, False
        self.longest, self.most = self._windows_of(groups)

    def _renumber(self) -> None:
        """Number rows again from 0."""
        for stream in self.join.streams:
            stream.first = 0
        self.saved_rows = None
        self._build_lists(self.queries.groups())

    def _build_lists(self, groups: dict[Signature, tuple[Branches, NDArray[np.bool_]]]) -> None:
        """Build all lists and codes from the rows."""
        self.n_rebuilt += self.n_rows > 0
        self.join.follow(groups, self._select, replaces_all=True)

    def set_time_type(self, time_type: str) -> None:
        """Set the type of times, at the first row."""
        if self.time_type and self.time_type != time_type:
            raise RowError(f"times were {self.time_type} so far; these are {time_type}")
        if not self.time_type:
            self._check_windows(time_type)
            self.time_type = time_type
            self.join = self.make_join()

    def _known_id_type(self, stream: str, id_: str | None) -> Type | None:
        """The type of a stream's ids before the first row; None if unknown."""
        if id_ is None:
            return Type("bigint")
        field = self.queries.schema_of(stream).find(id_)
        return None if field is None else field.type

    def make_join(self) -> WindowJoin:
        dtype = TIME_TYPES.get(self.time_type, np.int64)
        return WindowJoin(
            self.queries.streams,
            dtype,
            self.queries.time_zone,
            index_ranges,
            self.queries.make_finder(),
            self.options.columns.of,
        )

    def _types_of(self, number: int) -> dict[str, Type]:
        """The fields of a stream that queries use, by their full name."""
        stream = self.queries.streams[number]
        schema = self.queries.schema_of(stream)
        return {f"{stream}.{name}": _must(schema.find(name)).type for name in self.queries.fields_of(stream)}

    def _number(self, stream: str) -> int:
        if stream not in self.queries.streams:
            raise RowError(self.queries.schema.unknown_stream(stream))
        return self.queries.streams.index(stream)

    def _read(self, rows: dict[str, Any]) -> list[JoinRows]:
        for stream in rows:
            self._number(stream)
        read = []
        for number, stream in enumerate(self.queries.streams):
            schema, given = self.queries.schema_of(stream), rows.get(stream)
            fields = self.queries.fields_of(stream)
            if given is None:
                read.append(JoinRows.none(self._types_of(number), self.options.ids[number] is None))
                continue
            time, id_ = self.options.times[number], self.options.ids[number]
            each = read_join_rows(given, stream, schema, fields, self.queries.time_zone, time, id_)
            known = self.id_types[number]
            if each.n and each.ids is not None and known is not None and each.id_type != known:
                raise RowError(f"{stream} rows: ids were of type {known} so far; {id_!r} now has {each.id_type}")
            carried = self.join.streams[number].carried
            if carried is not None:
                each = replace(each, carried=self.options.columns.read_rows(given, stream, each.n, carried))
            read.append(each)
        types = {each.time_type for each in read if each.n}
        if len(types) > 1:
            raise RowError(f"the times of the streams have different types: {', '.join(sorted(types))}")
        if types and self.options.has_times:
            self.set_time_type(types.pop())
        return read

    def _on_time(self, number: int, rows: JoinRows) -> NDArray[np.bool_] | None:
        """Which rows are not late; None for all."""
        clock = self.join.clocks[number]
        if clock is None or self.options.late == "apply" or not self.options.has_times:
            return None
        on_time = rows.times >= clock
        return None if on_time.all() else on_time

    def _select(self, number: int, columns: dict[str, Column], n_rows: int) -> Matches:
        with naming(lambda selections: self.queries.ids_of_selections(number, selections)), limited(self.threads):
            return self.queries.selections(number).match(columns, n_rows)

    def _cut(self, batches: Sequence[Batch]) -> list[list[Batch]]:
        """The rows of a step in parts about as large as the kept rows, so that the cost depends on the windows."""
        n_rows = sum(map(len, batches))
        if any(stream.end + n_rows > _MAX_NUMBER for stream in self.join.streams):
            self._renumber()
        size = max(ROWS_AT_ONCE, self.join.n_rows)
        if n_rows <= size:
            return [list(batches)]
        times = np.concatenate([batch.times for batch in batches])
        streams = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
        order = np.lexsort((streams, times))
        parts, starts = [], np.zeros(len(batches), np.int64)
        for start in range(0, n_rows, size):
            taken = np.bincount(streams[order[start : start + size]], minlength=len(batches))
            ends = starts + taken
            parts.append([batch.slice(*span) for batch, *span in zip(batches, starts, ends, strict=True)])
            starts = ends
        return parts

    def _all_ids(self, batches: Sequence[Batch]) -> list[Column]:
        """The ids of the kept rows and of the new ones."""
        ids = []
        for number, stream in enumerate(self.join.streams):
            kept = [] if stream.ids is None else [stream.ids.whole().values]
            values = kept + [batch.ids.values for batch in batches[number : number + 1]]
            ids.append(join_values(values, self.id_types[number]))
        return ids

    def _check_residuals(self, pairs: JoinedRows, bases: Sequence[int]) -> JoinedRows:
        """The pairs for which the residuals are true."""
        for residual in self.queries.residuals:
            order = np.argsort(residual.queries, kind="stable")
            known = residual.queries[order]
            places = np.minimum(np.searchsorted(known, pairs.queries), len(known) - 1)
            checked = np.flatnonzero(known[places] == pairs.queries)
            if not len(checked):
                continue
            keep = np.ones(len(pairs), np.bool_)
            for start in range(0, len(checked), PAIRS_AT_ONCE):
                some = checked[start : start + PAIRS_AT_ONCE]
                columns: dict[str, Column] = {}
                for number, stream in enumerate(self.join.streams):
                    at = pairs.rows[number][some] + (bases[number] - stream.first)
                    names = [name for name in residual.fields if name in stream.columns]
                    columns |= {name: stream.columns[name].take(at) for name in names}
                keep[some], failed = residual.evaluate(columns, np.arange(len(some)), order[places[some]])
                self.join.n_failed += failed
            pairs = pairs.take(np.flatnonzero(keep))
        return pairs

    def _windows_of(self, groups: dict[Any, Any]) -> tuple[list[Any], list[int]]:
        """By stream, the longest window of time, below 0 for no window, and the largest window that counts rows."""
        n = len(self.queries.streams)
        longest: list[Any] = [-1] * n
        most = [0] * n
        for signature, (branches, is_removed) in groups.items():
            is_active = ~is_removed
            for number in range(n):
                if not is_active.any():
                    continue
                if signature.counts[number]:
                    most[number] = max(most[number], int(branches.units[number][is_active].max()))
                else:
                    lengths = branches.numbers if self.time_type == "double" else branches.units
                    longest[number] = max(longest[number], lengths[number][is_active].max())
        return longest, most

    def _check_windows(self, time_type: str) -> None:
        """Raise unless the windows of all queries fit times of this type, which is empty if there are no times."""
        for signature, (branches, is_removed) in self.queries.groups().items():
            for number, stream in enumerate(self.queries.streams):
                if signature.counts[number] or is_removed.all():
                    continue
                is_duration = signature.is_duration[number]
                if time_type and is_duration == (time_type == "timestamp"):
                    continue
                (query,) = self.queries.query_ids().at(branches.queries[~is_removed][:1])
                if not time_type:
                    raise QueryError(
                        f"is missing: query {query!r} has a window of time; name the time column, or use windows of "
                        f"rows",
                        option=f"{stream}_time",
                        query=query,
                    )
                wanted = "a duration such as '10 seconds'" if time_type == "timestamp" else "a number"
                raise QueryError(
                    f"times of the {stream} stream are of type {time_type}, so within must be {wanted}; query "
                    f"{query!r} has {'a duration' if is_duration else 'a number'}"
                )

    def _check_room(self, batches: Sequence[Batch]) -> None:
        most = self.options.max_state_rows
        if most is None or self.join.n_rows + sum(map(len, batches)) <= most:
            return
        clocks = [
            batch.times[-1] if len(batch) and (clock is None or batch.times[-1] > clock) else clock
            for batch, clock in zip(batches, self.join.clocks, strict=True)
        ]
        n_after = 0
        for number, (stream, batch) in enumerate(zip(self.join.streams, batches, strict=True)):
            times = np.concatenate([stream.times.values, batch.times])
            n_after += len(times) - WindowJoin.count_expired(
                self.longest[number], self.most[number], times, horizon_of(clocks, number)
            )
        if n_after > most:
            raise RowError(
                f"is {most:,}, but the join keeps {count(self.join.n_rows, 'row')} and would keep {n_after:,}; shorten "
                f"the windows, allow more rows, or call advance() with the time that the streams have reached",
                option="max_state_rows",
            )


def _too_large(n_pairs: int) -> AnswerError:
    return too_large(
        f"has at least {count(n_pairs, 'pair')}",
        "pass fewer rows at once, or get the pairs in pieces with step_batches",
    )


def _must(field: Any) -> Any:
    assert field is not None
    return field
