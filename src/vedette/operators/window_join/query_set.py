"""The join query set: join queries over the rows of several streams, in one process.

Each query is compiled to branches (see `plan`), which are kept in groups and only appended. When more queries are
removed than active, the active ones are numbered again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vedette.data.columns import Column
from vedette.data.ids import Ids, take_ids
from vedette.data.rows import read_row
from vedette.data.schema import Field, Schema, check_time_zone
from vedette.errors import QueryError, SchemaError, count, nearest
from vedette.language import Residual, check_text, compile_texts, condition_of_text
from vedette.native.damage import check, check_type
from vedette.operators.window_join.algorithms import ALGORITHMS
from vedette.operators.window_join.branches import Branches, Signature
from vedette.operators.window_join.join import PairFinder
from vedette.operators.window_join.plan import JoinPlan, plan_joins
from vedette.operators.window_join.stream_selections import StreamSelections
from vedette.operators.window_join.windows import read_each_window, read_windows
from vedette.queries import content
from vedette.queries.attributes import Attributes
from vedette.queries.query_texts import QueryTexts, as_texts
from vedette.queries.revisions import Revisions
from vedette.queries.set_changes import Changes
from vedette.queries.versioned_set import VersionedSet
from vedette.queries.versions import NOT_REMOVED, Versions
from vedette.queries.why import Why, explain_row
from vedette.settings import settings

if TYPE_CHECKING:
    from vedette.operators.window_join.monitor import JoinMonitor

FEW_REMOVED = 1024  # removed queries up to this number never cause a compaction


class JoinQuerySet(VersionedSet):
    """Join queries over two or more named streams, each with its own schema.

    >>> pairs = JoinQuerySet(left="symbol string, price double", right="symbol string, price double")
    >>> pairs.add("near", "left.symbol = right.symbol AND abs(left.price - right.price) <= 0.5", rows=100)
    >>> join = pairs.window()
    >>> join.step(left={"symbol": ["IBM"], "price": [40.0]}, right={"symbol": ["IBM"], "price": [40.25]}).to_pylist()
    [{'query': 'near', 'left': 0, 'right': 0}]

    Texts name fields by their stream: `left.price`. `time_zone` is the time zone for dates and for timestamps without
    one. For two streams, `index` names an algorithm to compare ordered lists with: "SJ-Join" or "IBS-JS".
    """

    kind = "joins"

    def __init__(self, *, time_zone: str = "UTC", index: str | None = None, **streams: str | Schema) -> None:
        self._schemas = {name: _read_schema(name, schema) for name, schema in streams.items()}
        if len({name.lower() for name in streams}) < max(2, len(streams)):
            raise SchemaError(
                f"a join needs two or more streams with different names, such as "
                f'JoinQuerySet(left="id bigint, x double", right="id bigint, y double"); got: '
                f"{', '.join(streams) or 'none'}"
            )
        for name in streams:
            if not name.isidentifier() or name.lower() == "query":
                raise SchemaError(
                    f"a stream's name must consist of letters, digits and _, and must not be 'query', which is a "
                    f"column of answers; got {name!r}"
                )
        _check_index(index, list(streams))
        self.index = index
        self.name = ""  # a part of event ids; a registry sets it
        self.schema = Schema.of_streams(self._schemas)
        self.time_zone = check_time_zone(time_zone)
        self.epoch = 0  # how often queries were numbered again
        self._ids = Ids()
        self._versions = Versions()
        self._selections = [StreamSelections(self._own_schema(name)) for name in streams]
        self._groups: dict[Signature, list[Branches]] = {}
        self._residuals: list[Residual] = []  # of several streams
        self._n_branches = np.empty(0, np.int32)  # by query
        self._texts = QueryTexts()
        self._attributes = Attributes()  # by position: metadata
        self._used_fields: tuple[tuple[int, int], dict[str, list[str]]] | None = None  # with their epoch and version
        self._lock = threading.RLock()  # readers compile pending changes, one at a time

    def __repr__(self) -> str:
        streams = ", ".join(f"{name}={str(schema)!r}" for name, schema in self._schemas.items())
        return f"JoinQuerySet({streams}, {count(len(self), 'query', 'queries')}, version {self.version})"

    @property
    def streams(self) -> list[str]:
        """The names of the streams, in their order."""
        return list(self._schemas)

    @property
    def nbytes(self) -> int:
        """The memory of the compiled set, including ids and versions."""
        with self._lock:
            for selections in self._selections:
                selections.compile()
        arrays = [array for many in self._groups.values() for each in many for array in vars(each).values()]
        rest: list[Any] = [self._ids, self._versions, self._n_branches, *self._selections, *self._residuals]
        rest.append(self._attributes)
        return sum(int(each.nbytes) for each in (*arrays, *rest))

    def schema_of(self, stream: str) -> Schema:
        """The schema of a stream."""
        return self._schemas[stream]

    def fields_of(self, stream: str) -> list[str]:
        """The fields of a stream that queries use. Its rows need no other fields."""
        if self._used_fields is None or self._used_fields[0] != (self.epoch, self.version):
            self._used_fields = (self.epoch, self.version), self._find_fields()
        return self._used_fields[1][stream]

    def _find_fields(self) -> dict[str, list[str]]:
        with self._lock:
            used = {name for selections in self._selections for name in selections.fields}
        used.update(name for residual in self._residuals for name in residual.fields)
        for signature in self._groups:
            used.update(node.name for link in _links(signature) for side in link.sides for node in side.walk())
        return {
            stream: [field.name for field in schema if f"{stream}.{field.name}" in used]
            for stream, schema in self._schemas.items()
        }

    # Changes. Each is applied as a whole under one new version, or raises and changes nothing.

    def add(
        self,
        query_id: str | int,
        text: str,
        *,
        within: Any = None,
        rows: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a query over a window of time, `within="10 seconds"`, or of the last `rows` of each stream.

        A dict sets the window of each stream: `within={"left": "10 seconds", "right": "1 minute"}`. If the time column
        is a number, so is `within`. `metadata` is a dict of JSON values that answers can carry.
        """
        self._add([query_id], [text], within, rows, metadata)

    def add_many(
        self, ids: Any, texts: Sequence[str] | Any, *, within: Any = None, rows: Any = None, metadata: Any = None
    ) -> None:
        """Add many queries at once, with one window and one dict of metadata for all or a list with one for each."""
        self._add(ids, as_texts(texts), within, rows, metadata)

    def replace(
        self,
        query_id: str | int,
        text: str,
        *,
        within: Any = None,
        rows: Any = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace the text and the window of a query. It keeps its metadata, unless other is given."""
        position = self._must_find(query_id)
        if metadata is None:
            (metadata,) = self._attributes.metadata_at(np.array([position]))
        self._add([query_id], [text], within, rows, metadata, replaced=[position])

    def apply(self, changes: Changes) -> None:
        """Apply the changes of a registry, all at once. Versions and marks are the registry's.

        Queries that were added and removed in between are skipped: rows join by the queries of their step.
        """
        revisions = Revisions.read(changes, self._ids, self._versions)
        stays = np.flatnonzero(revisions.ends == NOT_REMOVED)
        texts, windows = (changes.texts or []), (changes.windows or [])
        read = take_ids(revisions.ids, stays)
        staying = [texts[each] for each in stays]
        compiled = compile_texts(staying, self.schema, self.time_zone, ids=read.tolist(), views=self.index is None)
        plan = plan_joins(compiled, self.streams, read_each_window([windows[each] for each in stays], self.streams))
        with self._lock:
            self._versions.follow(changes.versions, changes.marks)
            if len(revisions.ended):
                self._release(revisions.ended, revisions.ended_versions)
            if len(stays):
                first = len(self._versions)
                self._ids.append(read)
                self._versions.add_at(changes.added_versions[stays])
                self._append(plan, first, len(stays))
                self._texts.append(staying)
                metadata = None if changes.metadata is None else [changes.metadata[each] for each in stays]
                self._attributes.append(Attributes.of_columns(len(stays), {}, metadata))
        self._settle()

    def check(self, text: str) -> list[str]:
        """Warnings about a text. Raises QueryError if it is invalid. The set does not change."""
        return check_text(text, self.schema, self.time_zone)

    # Answers.

    def window(
        self,
        *,
        late: str = "drop",
        max_state_rows: int | None = None,
        columns: Any = None,
        metadata: Any = None,
        event_id: bool | None = None,
        threads: int | None = None,
        **roles: str | None,
    ) -> JoinMonitor:
        """An operator that joins new rows (see docs/operators.md).

        `left_time` and `left_id` name the time and id columns of the left stream, and so for every stream. Without an
        id column rows are identified by their number; without a time column they are in the order of arrival. `late`:
        rows older than the last row of their stream are dropped ("drop") or applied ("apply"). `max_state_rows` limits
        the number of kept rows of all streams.

        `columns` brings columns of the rows of a pair, as `left_...` and `right_...`, with the names of the streams: a
        list of names for all streams, or a dict with a list per stream. `metadata` brings fields of the query's
        metadata. With either of them, or if `event_id` is true, pairs have a stable `event_id`.

        `threads` limits the threads that a large batch is cut for, by default the setting threads, else all cores; the
        answer is the same for any number.
        """
        from vedette.operators.window_join.monitor import JoinMonitor
        from vedette.operators.window_join.options import JoinOptions

        options = JoinOptions.read(
            self.streams,
            roles,
            late=late,
            max_state_rows=max_state_rows,
            columns=columns,
            metadata=metadata,
            event_id=event_id,
        )
        return JoinMonitor(self, options, threads=threads)

    def why(self, query_id: str | int, **rows: Mapping[str, Any]) -> Why:
        """Why one row of each stream, `left={...}, right={...}`, meets a query's condition, or does not.

        Windows are not considered. A set that was loaded from a file has no texts, and so no answer.
        """
        text = self._texts.at(self._must_find(query_id))
        if text is None:
            raise QueryError(f"the text of query {query_id!r} is unknown, because a file of joins has no texts")
        if {name.lower() for name in rows} != {name.lower() for name in self.streams}:
            wanted = ", ".join(f"{name}={{...}}" for name in self.streams)
            raise QueryError(f"why needs one row of each stream: {wanted}; got {', '.join(rows) or 'none'}")
        condition = condition_of_text(text, self.schema, self.time_zone)
        by_stream = {name.lower(): row for name, row in rows.items()}
        columns: dict[str, Column] = {}
        for stream, schema in self._schemas.items():
            used = [field.name for field in schema if f"{stream}.{field.name}" in condition.fields]
            read = read_row(by_stream[stream.lower()], schema, used, self.time_zone)
            columns |= {f"{stream}.{name}": column for name, column in read.items()}
        return explain_row(query_id, condition, columns, text)

    def explain(self) -> str:
        """A text that says how the queries are evaluated, and why."""
        from vedette.operators.window_join.explanation import explain

        return explain(self)

    # The content of a file.

    def _to_content(self) -> dict[str, Any]:
        with self._lock:
            groups = [[signature.to_parts(), list(vars(self._join(signature)).values())] for signature in self._groups]
            return {
                "name": self.name,
                "attributes": self._attributes.to_parts(),
                "streams": [[name, str(schema)] for name, schema in self._schemas.items()],
                "time_zone": self.time_zone,
                "index": self.index,
                "ids": self._ids.to_parts(),
                "versions": self._versions.to_parts(),
                "selections": [each.to_parts() for each in self._selections],
                "groups": groups,
                "residuals": self._residuals,
                "n_branches": self._n_branches[: len(self._versions)],
            }

    @classmethod
    def _from_content(cls, saved: dict[str, Any], *, is_checked: bool) -> JoinQuerySet:
        made = cls(time_zone=saved["time_zone"], index=saved["index"], **dict(saved["streams"]))
        made._read_ids(saved, is_checked=is_checked)
        made._texts = QueryTexts(len(made._ids))
        made.name = saved.get("name", "")
        check_type(made.name, str, "the name of a set")
        made._read_attributes(saved, is_checked=is_checked)
        made._selections = [
            StreamSelections.from_parts(made._own_schema(name), *parts, is_checked=is_checked)
            for name, parts in zip(made.streams, saved["selections"], strict=True)
        ]
        made._groups = {Signature.from_parts(*parts): [Branches(*arrays)] for parts, arrays in saved["groups"]}
        made._residuals, made._n_branches = saved["residuals"], saved["n_branches"]
        if not is_checked:
            made._validate()
        return made

    def _validate(self) -> None:
        """Raise DamageError unless the content of a file is safe to join with."""
        n, is_removed = len(self._ids), self._versions.is_removed
        check_type(self._residuals, list[Residual], "the residuals of joins")
        for residual in self._residuals:
            residual.validate(self.schema, range(n))
        sizes = [selections.n for selections in self._selections]
        uses = [np.zeros(size, np.int64) for size in sizes]
        n_branches = np.zeros(n, np.int64)
        for signature, (branches,) in self._groups.items():
            signature.validate(self.streams, self.schema)
            branches.validate(signature, n, sizes)
            np.add.at(n_branches, branches.queries, 1)
            is_active = ~is_removed[branches.queries]
            for counts, chosen in zip(uses, branches.selections, strict=True):
                np.add.at(counts, chosen[is_active], 1)
        check_type(self._n_branches, NDArray[np.int32], "the branches of joins")
        check(np.array_equal(self._n_branches, n_branches), "branches of joins are missing")
        for selections, counts in zip(self._selections, uses, strict=True):
            check(np.array_equal(selections.uses, counts), "the use counts of selections are wrong")

    # For monitors.

    def groups(self) -> dict[Signature, tuple[Branches, NDArray[np.bool_]]]:
        """All branches by group, and which of them are removed."""
        is_removed = self._versions.is_removed
        with self._lock:
            joined = {signature: self._join(signature) for signature in self._groups}
        return {signature: (branches, is_removed[branches.queries]) for signature, branches in joined.items()}

    def selections(self, stream: int) -> StreamSelections:
        return self._selections[stream]

    def ids_at(self, positions: NDArray[Any]) -> list[str] | list[int]:
        """The ids at some positions."""
        return self._ids.at(positions)

    def ids_of_selections(self, stream: int, selections: NDArray[Any]) -> list[str] | list[int]:
        """The ids of the queries that use these selections of a stream."""
        users = [np.empty(0, np.int32)]
        for branches, is_removed in self.groups().values():
            users.append(branches.queries[np.isin(branches.selections[stream], selections) & ~is_removed])
        return self._ids.at(np.unique(np.concatenate(users)))

    def make_finder(self) -> PairFinder | None:
        """The algorithm that finds pairs instead of ordered lists, or None."""
        return None if self.index is None else ALGORITHMS[self.index](lambda stream: self._selections[stream].boxes())

    @property
    def residuals(self) -> list[Residual]:
        """The residuals to check on rows that join, by position of the query."""
        return self._residuals

    @property
    def is_repeated(self) -> NDArray[np.bool_]:
        """By position, whether a query has several branches, which may find the same rows."""
        return np.asarray(self._n_branches > 1)

    def query_ids(self) -> Ids:
        return self._ids

    def revisions_at(self, positions: NDArray[np.int32]) -> NDArray[np.int64]:
        """The version that added each query."""
        return self._versions.added_at(positions)

    # For pipelines.

    @property
    def has_counts(self) -> bool:
        """Whether a query has a window that counts rows, and so needs the whole stream in order."""
        return any(any(signature.counts) for signature in self._active_signatures())

    def shared_equality(self) -> dict[str, str] | None:
        """By stream, a field that is a column on which every query equates all streams; or None."""
        shared: set[frozenset[tuple[str, str]]] | None = None
        for signature in self._active_signatures():
            equal = set()
            for fields in _equated(signature):
                columns = [self._schemas[stream].find(name) for stream, name in fields.items()]
                if len(fields) == len(self.streams) and not any(each and each.path for each in columns):
                    equal.add(frozenset(fields.items()))
            shared = equal if shared is None else shared & equal
        if not shared:
            return None
        found = dict(min(shared, key=sorted))
        return {stream: found[stream] for stream in self.streams}

    # Inside.

    def _own_schema(self, stream: str) -> Schema:
        return Schema(tuple(Field(f"{stream}.{field.name}", field.type) for field in self._schemas[stream]))

    def _active_signatures(self) -> list[Signature]:
        return [signature for signature, (_, is_removed) in self.groups().items() if not is_removed.all()]

    def _join(self, signature: Signature) -> Branches:
        many = self._groups[signature]
        if len(many) > 1:
            self._groups[signature] = [Branches.concat(many)]
        return self._groups[signature][0]

    def _add(
        self, ids: Any, texts: Sequence[str], within: Any, rows: Any, metadata: Any, replaced: Sequence[int] = ()
    ) -> None:
        read = self._ids.read(ids) if replaced else self._read_new_ids(ids)
        if len(read) != len(texts):
            raise QueryError(f"got {len(read)} ids but {len(texts)} texts; each query needs both")
        named = ids if isinstance(ids, (list, tuple)) else read.tolist()
        windows = read_windows(within, rows, self.streams, len(read), named)
        views = self.index is None  # the other algorithms know fields only
        compiled = compile_texts(texts, self.schema, self.time_zone, ids=named, limits=settings(), views=views)
        plan = plan_joins(compiled, self.streams, windows)
        attributes = Attributes.of_metadata(len(read), metadata, named)
        if not len(read):
            return
        changed = [windows.counts.data, windows.is_duration.data, windows.units.data, windows.numbers.data]
        self._versions.advance([*content.of_ids(read), *content.of_texts(texts), *changed, *attributes.content()])
        with self._lock:
            if replaced:
                self._release(np.array(replaced, np.int32))
            first = len(self._versions)
            self._ids.append(read)
            self._versions.add(len(read))
            self._append(plan, first, len(read))
            self._texts.append(texts)
            self._attributes.append(attributes)
        self._settle()

    def _append(self, plan: JoinPlan, first: int, n: int) -> None:
        wanted = [np.concatenate([each.selections for each in many], axis=1) for many in plan.groups.values()]
        every = np.concatenate([np.empty((len(self.streams), 0), np.int32), *wanted], axis=1)
        numbers = np.stack(
            [
                selections.append(new, every[place])
                for place, (selections, new) in enumerate(zip(self._selections, plan.selections, strict=True))
            ]
        )
        counts = np.zeros(n, np.int32)
        start = 0
        for signature, many in plan.groups.items():
            branches = Branches.concat(many)
            end = start + len(branches)
            np.add.at(counts, branches.queries, 1)
            changed = {
                **vars(branches),
                "queries": branches.queries + np.int32(first),
                "selections": numbers[:, start:end],
            }
            self._groups.setdefault(signature, []).append(Branches(**changed))
            start = end
        self._n_branches = np.concatenate([self._n_branches[:first], counts])
        for residual in plan.residuals:
            moved = Residual(residual.queries + first, residual.expression, residual.constants, residual.time_zone)
            for place, known in enumerate(self._residuals):
                if known.expression == moved.expression:
                    self._residuals[place] = Residual.concat([known, moved])
                    break
            else:
                self._residuals.append(moved)

    def _remove(self, positions: NDArray[np.int32]) -> None:
        self._versions.advance(content.of_ids(self._ids.take(positions)))
        with self._lock:
            self._release(positions)
        self._settle()

    def _release(self, positions: NDArray[np.int32], versions: NDArray[np.int64] | None = None) -> None:
        self._versions.remove(positions, versions)
        for signature in self._groups:
            branches = self._join(signature)
            removed = np.flatnonzero(np.isin(branches.queries, positions))
            if len(removed):
                for place, selections in enumerate(self._selections):
                    selections.release(branches.selections[place, removed])

    def _settle(self) -> None:
        if self._versions.n_removed > max(self._versions.n_active, FEW_REMOVED):
            self._compact()

    def _compact(self) -> None:
        """Forget removed queries. The others get new positions."""
        with self._lock:
            is_removed = self._versions.is_removed
            moved = (np.cumsum(~is_removed) - 1).astype(np.int32)
            ids = self._active_ids()
            kept = [selections.without_removed() for selections in self._selections]
            groups: dict[Signature, list[Branches]] = {}
            for signature, (branches, removed) in self.groups().items():
                active = branches.take(np.flatnonzero(~removed))
                if len(active):
                    selected = np.stack(
                        [numbers[each] for (_, numbers), each in zip(kept, active.selections, strict=True)]
                    )
                    changed = {**vars(active), "queries": moved[active.queries], "selections": selected}
                    groups[signature] = [Branches(**changed)]
            residuals = []
            for residual in self._residuals:
                stays = np.flatnonzero(~is_removed[residual.queries])
                if len(stays):
                    taken = residual.take(stays)
                    residuals.append(
                        Residual(
                            moved[taken.queries].astype(np.int64), taken.expression, taken.constants, taken.time_zone
                        )
                    )
            self._n_branches = self._n_branches[: len(is_removed)][~is_removed]
            self._texts = self._texts.without(is_removed)
            self._attributes = self._attributes.take(np.flatnonzero(~is_removed))
            self._ids, self._versions = ids, self._versions.without_removed()
            self._selections = [selections for selections, _ in kept]
            self._groups, self._residuals = groups, residuals
            self.epoch += 1


def _read_schema(stream: str, schema: Any) -> Schema:
    try:
        return schema if isinstance(schema, Schema) else Schema.parse(schema)
    except SchemaError as error:
        raise error.within(f"stream {stream!r}") from None


def _check_index(index: str | None, streams: list[str]) -> None:
    if index is None:
        return
    names = f"the names are: {', '.join(ALGORITHMS)}; by default ordered lists are used"
    if index not in ALGORITHMS:
        raise QueryError(f"unknown index {index!r} of joins; {names}{nearest(str(index), ALGORITHMS)}")
    if len(streams) > 2:
        raise QueryError(f"{index} joins two streams, not {len(streams)} ({', '.join(streams)}); {names}")


def _links(signature: Signature) -> Iterable[Any]:
    for edge in signature.edges:
        yield from edge.equalities
        if edge.link is not None:
            yield edge.link
    yield from signature.conditions


def _equated(signature: Signature) -> list[dict[str, str]]:
    """Fields that are equal to each other, by stream. Only plain fields are considered."""
    classes: list[dict[str, str]] = []
    for edge in signature.edges:
        for link in edge.equalities:
            if any(side.op != "field" for side in link.sides):
                continue
            pair = dict(side.name.split(".", 1) for side in link.sides)
            for known in classes:
                if any(known.get(stream) == field for stream, field in pair.items()):
                    known.update(pair)
                    break
            else:
                classes.append(pair)
    return classes
