"""Changes of queries for a caller: only of their own, within their limits, and under their name in the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vedette.data.durations import read_duration
from vedette.errors import ConflictError, UnknownQueryError
from vedette.language import CompiledTexts, compile_texts
from vedette.queries.query_options import DURATIONS, OPTIONS
from vedette.registry.kinds import BORDER, KINDS
from vedette.registry.read.query_info import QueryInfo
from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry
from vedette.registry.write.change import Change
from vedette.serve.access import OWNER, Caller
from vedette.serve.match_shares import Sample
from vedette.serve.monitor_file import MonitorFile
from vedette.serve.options import ServeOptions
from vedette.serve.problems import Problem
from vedette.serve.recent_rows import RecentRows

_ATTEMPTS = 5
_MOST_RESTORED = 10_000


@dataclass(frozen=True)
class Editor:
    """Changes one set."""

    registry: Registry
    caller: Caller
    name: str
    options: ServeOptions
    recent: RecentRows | None = None

    def add(self, query_id: Any, given: dict[str, Any], expect_version: int | None = None) -> dict[str, Any]:
        """Add a query; returns the new version, and the share of rows that the query matches."""
        answer: dict[str, Any] = {}

        def steps(change: Change, info: SetInfo) -> None:
            self.check_room(1)
            self.check_durations(given, self.time_type(info))
            answer.update(self._measure(given, info, query_id))
            change.add(query_id, **self.owned(given))

        return {"version": self.write(steps, expect_version), **answer}

    def replace(self, query_id: Any, given: dict[str, Any], expect_version: int | None = None) -> dict[str, Any]:
        """Change what is given of a query; returns the same as `add`."""
        answer: dict[str, Any] = {}

        def steps(change: Change, info: SetInfo) -> None:
            self._check_own([query_id], info)
            self.check_durations(given, self.time_type(info))
            answer.update(self._measure(given, info, query_id))
            change.replace(query_id, **(self.owned(given) if "metadata" in given else given))

        return {"version": self.write(steps, expect_version), **answer}

    def remove(self, query_id: Any, expect_version: int | None = None) -> int:
        def steps(change: Change, info: SetInfo) -> None:
            self._check_own([query_id], info)
            change.remove(query_id)

        return self.write(steps, expect_version)

    def restore(self, ids: Sequence[Any], version: int, expect_version: int | None = None) -> int:
        """Give queries the content that they had at a version, or remove them if they did not exist."""
        if len(ids) > _MOST_RESTORED:
            raise Problem(413, "too_many_queries", f"{len(ids):,} queries differ; at most {_MOST_RESTORED:,} fit")

        def steps(change: Change, info: SetInfo) -> None:
            removed: list[Any] = []
            n_added = 0
            for query_id in ids:
                history = self.registry.history(self.name, query_id)
                then = at_version(history, version)
                is_there = history[-1].state in ("active", "parked")
                if not all(self.caller.sees(each.metadata) for each in (then, history[-1]) if each is not None):
                    raise UnknownQueryError(f"no query {query_id!r} in set {self.name!r}")
                if is_there:
                    change.remove(query_id)
                if then is not None:
                    change.add(query_id, **to_arguments(then, info))
                    n_added += not is_there
                elif is_there:
                    removed.append(query_id)
            self.check_room(n_added, removed)

        return self.write(steps, expect_version)

    # Rules.

    def owned(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a new query. Those of a confined caller get their owner."""
        if self.caller.owner is None:
            return given
        metadata = dict(given.get("metadata") or {})
        if not self.caller.sees({OWNER: metadata.get(OWNER, self.caller.owner)}):
            raise Problem(403, "forbidden", f"the token is confined to queries of the owner {self.caller.owner!r}")
        return {**given, "metadata": {**metadata, OWNER: self.caller.owner}}

    def check_text(self, given: dict[str, Any], info: SetInfo, query_id: Any = None) -> CompiledTexts | None:
        """Raise QueryError if a text is invalid or exceeds a limit of the service. None if there is no text."""
        text, schema = given.get("text"), info.read_schema()
        if not isinstance(text, str) or schema is None:
            return None
        ids = None if query_id is None else [query_id]
        return compile_texts([text], schema, info.time_zone, ids=ids, limits=self.options.limits_of_queries)

    def time_type(self, info: SetInfo) -> str | None:
        """The type of the times of the set's monitor, if it is one whose queries have durations."""
        schema = info.read_schema()
        with suppress(FileNotFoundError):  # it has no monitor, or it was just deleted
            if info.kind == BORDER and schema is not None:
                options = MonitorFile(self.options.state / info.uid).read_options()
                field = schema.find(options["time"])
                return None if field is None else field.type.widest.name
        return None

    def check_durations(self, given: dict[str, Any], time_type: str | None) -> None:
        """Raise QueryError if a duration of a query does not fit the times: the rows of all owners would be refused."""
        for name in DURATIONS:
            if time_type is not None and given.get(name) is not None:
                read_duration(given[name], name, time_type)

    def sample(self, info: SetInfo) -> Sample | None:
        """The rows that new queries are measured on."""
        return Sample.of(self.registry, info, self.recent, self.options.max_match_share)

    def _measure(self, given: dict[str, Any], info: SetInfo, query_id: Any) -> dict[str, Any]:
        """Check a text, and what it matches; returns what the answer says about that."""
        compiled = self.check_text(given, info, query_id)
        sample = None if compiled is None else self.sample(info)
        if compiled is None or sample is None:
            return {}
        shares = sample.measure(compiled, 1)
        if shares is None:
            return {}
        sample.check(query_id, shares[0])
        return sample.to_record(shares[0])

    @property
    def most_queries(self) -> int | None:
        """The limit on active queries of the caller's token."""
        if self.caller.max_queries is not None or not self.caller.token_id:
            return self.caller.max_queries
        return self.options.max_queries_per_token or None

    def check_room(self, n_added: int, removed: Sequence[Any] = ()) -> None:
        """Raise a problem if the token would have too many queries, without those that it removes at once."""
        most = self.most_queries
        if most is None or not n_added:
            return
        n = self.registry.count_by_author(self.name, self.caller.author or "") + n_added
        if n > most:
            n -= sum(self._has_added(query_id) for query_id in removed)
        if n > most:
            raise Problem(429, "too_many_queries", f"the token would have {n:,} active queries; its limit is {most:,}")

    def _has_added(self, query_id: Any) -> bool:
        """Whether an active query is one that the caller has added or replaced."""
        version = self.registry.get(self.name, query_id).added_version
        return self.registry.authors(self.name, [version]).get(version) == self.caller.author

    def sees(self, query: QueryInfo) -> bool:
        return self.caller.sees(query.metadata)

    def _check_own(self, ids: Sequence[Any], info: SetInfo) -> None:
        if self.caller.owner is not None:
            for query_id in ids:
                if not self.sees(self.registry.get(self.name, query_id)):
                    raise UnknownQueryError(f"no query {query_id!r} in set {info.name!r}")

    def write(self, steps: Callable[[Change, SetInfo], None], expect_version: int | None) -> int:
        """Write steps as one change. What they read is still true when it is written: else they are made again."""
        for attempt in range(_ATTEMPTS):
            info = self.registry.end_due(self.name)
            must_hold = self.caller.owner is not None or self.most_queries is not None
            expected = info.version if expect_version is None and must_hold else expect_version
            change = self.registry.change(self.name, expect_version=expected, author=self.caller.author)
            steps(change, info)
            try:
                return change.commit()
            except ConflictError:
                if expect_version is not None or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError


def at_version(history: Sequence[QueryInfo], version: int) -> QueryInfo | None:
    """The revision that was active at a version."""
    for each in history:
        if each.added_version <= version and (each.removed_version is None or each.removed_version > version):
            return each
    return None


def to_arguments(query: QueryInfo, info: SetInfo) -> dict[str, Any]:
    """A revision as arguments of `add`."""
    given = {name: value for name, value in query.options.items() if name in OPTIONS}
    form = KINDS[info.kind].form
    if "text" in form.arguments:
        given["text"] = query.text
    given |= query.window or {}
    given |= query.sides or {}
    if "low" in form.arguments:
        given |= {"low": query.low, "high": query.high}
    if query.metadata:
        given["metadata"] = query.metadata
    if query.expires_at is not None:
        given["expires_at"] = query.expires_at
    return given
