"""A change of a set: steps are collected in memory and written as one transaction and one version."""

from __future__ import annotations

import dataclasses
from types import TracebackType
from typing import Any

from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.write.edit import Edit
from vedette.registry.write.steps import ADD, REMOVE, REPLACE, Given, Step, kind_of, read_step
from vedette.registry.write.writer import Writer


class Change:
    """Several steps as one change: `add`, `replace` and `remove` collect steps; the end of the block writes them.

    All texts and ids are checked together at the end. After an error the set is unchanged.
    """

    def __init__(
        self, database: Database, info: SetInfo, expect_version: int | None = None, author: str | None = None
    ) -> None:
        self.version: int | None = None  # the new version, after `commit`
        self._database = database
        self._info = info
        self._expect_version = expect_version
        self._author = author
        self._steps: list[Step] = []

    def __enter__(self) -> Change:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()

    def add(
        self,
        query_id: str | int,
        text: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        expires_at: Any = None,
        ttl: Any = None,
        **written: Any,
    ) -> None:
        """Add a query. Its arguments depend on the kind of the set.

        Sets for match and border take a text. Window joins take a text and `within` or `rows`. Band joins take `low`
        and `high`; None means unbounded. Moving joins take the sides of a zone: `x_low`, `x_high`, `y_low`, `y_high`
        and, in three dimensions, `z_low` and `z_high`. Sets for border also take the options of a query: `dwell`,
        `margin`, `expire_after`, `cooldown` and `once`.
        """
        self._gather(ADD, [query_id], Given({"text": text} | written, metadata, expires_at, ttl))

    def add_many(
        self,
        ids: Any,
        texts: Any = None,
        *,
        metadata: Any = None,
        expires_at: Any = None,
        ttl: Any = None,
        **written: Any,
    ) -> None:
        """Add many queries. Metadata and expiries are one value for all queries, or a list with one value per query.

        Band joins take `lows` and `highs`. Moving joins take an array per side, with the names of `add`. Expiries may
        also be a pandas or Arrow column. NaT and None mean that a query does not expire. Times without a time zone,
        such as NumPy's, are an error.
        """
        self._gather(ADD, ids, Given({"text": texts} | written, metadata, expires_at, ttl, is_many=True))

    def replace(
        self,
        query_id: str | int,
        text: str | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        expires_at: Any = None,
        ttl: Any = None,
        **written: Any,
    ) -> None:
        """Change an active or parked query. Arguments that are not given keep their values.

        expires_at="never" clears the expiry. Bands and zones are replaced as a whole.
        """
        self._gather(REPLACE, [query_id], Given({"text": text} | written, metadata, expires_at, ttl))

    def replace_many(
        self,
        ids: Any,
        texts: Any = None,
        *,
        metadata: Any = None,
        expires_at: Any = None,
        ttl: Any = None,
        **written: Any,
    ) -> None:
        """Change many queries. Arguments that are not given keep their values. None in a list clears the value."""
        self._gather(REPLACE, ids, Given({"text": texts} | written, metadata, expires_at, ttl, is_many=True))

    def remove(self, query_id: str | int) -> None:
        """Remove a query."""
        self._gather(REMOVE, [query_id], Given())

    def remove_many(self, ids: Any) -> None:
        """Remove many queries."""
        self._gather(REMOVE, ids, Given())

    def commit(self) -> int:
        """Write the change; returns the new version, or the current one if nothing changes."""
        edit = Edit.of(self._steps)
        if not edit and self._expect_version is None:
            self.version = self._info.version
        else:
            self.version = Writer(self._database, edit, self._expect_version, self._author).write(self._info)
        self._steps = []
        return self.version

    def _gather(self, action: str, ids: Any, given: Given) -> None:
        step = read_step(action, self._info, ids, given)
        if step.ids:
            self._steps.append(step)
            self._info = dataclasses.replace(self._info, id_kind=self._info.id_kind or kind_of(step.ids))
