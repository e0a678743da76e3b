"""Changes of queries for a caller: only of their own, within their limits, and under their name in the history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vedette.errors import ConflictError, QueryError, UnknownQueryError
from vedette.queries.query_options import OPTIONS
from vedette.registry.kinds import KINDS
from vedette.registry.read.query_info import QueryInfo
from vedette.registry.read.set_info import SetInfo
from vedette.registry.registry import Registry
from vedette.registry.write.change import Change
from vedette.serve.access import OWNER, Caller
from vedette.serve.problems import Problem

_ATTEMPTS = 5
_MOST_RESTORED = 10_000


@dataclass(frozen=True)
class Editor:
    """Changes one set."""

    registry: Registry
    caller: Caller
    name: str
    max_text_length: int

    def add(self, query_id: Any, given: dict[str, Any], expect_version: int | None = None) -> int:
        """Add a query; returns the new version."""
        self.check_text(given)
        self.check_room(1)
        return self.write(lambda change, _: change.add(query_id, **self.owned(given)), expect_version)

    def replace(self, query_id: Any, given: dict[str, Any], expect_version: int | None = None) -> int:
        """Change what is given of a query."""
        self.check_text(given)

        def steps(change: Change, info: SetInfo) -> None:
            self._check_own([query_id], info)
            change.replace(query_id, **(self.owned(given) if "metadata" in given else given))

        return self.write(steps, expect_version)

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
            n_new = 0
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
                    n_new += not is_there
            self.check_room(n_new)

        return self.write(steps, expect_version)

    # Rules.

    def owned(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a new query. Those of a confined caller get their owner."""
        if self.caller.owner is None:
            return given
        metadata = dict(given.get("metadata") or {})
        if metadata.setdefault(OWNER, self.caller.owner) != self.caller.owner:
            raise Problem(403, "forbidden", f"the token is confined to queries of the owner {self.caller.owner!r}")
        return {**given, "metadata": metadata}

    def check_text(self, given: dict[str, Any]) -> None:
        n = len(given.get("text") or "")
        if n > self.max_text_length > 0:
            raise QueryError(
                f"the text has {n:,} characters; the limit is {self.max_text_length:,} (--max-text-length)"
            )

    def check_room(self, n_new: int) -> None:
        """Raise a problem if the token would have too many queries."""
        most = self.caller.max_queries
        if most is not None and n_new:
            n = self.registry.count_by_author(self.name, self.caller.author or "")
            if n + n_new > most:
                raise Problem(
                    429, "too_many_queries", f"the token would have {n + n_new:,} active queries; its limit is {most:,}"
                )

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
            expected = info.version if expect_version is None and self.caller.owner is not None else expect_version
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
