"""A change of a set: steps gathered in memory, written as one transaction and one version."""

from __future__ import annotations

import dataclasses
from types import TracebackType
from typing import Any

from vedette.registry.read.set_info import SetInfo
from vedette.registry.store.database import Database
from vedette.registry.write.edit import Edit
from vedette.registry.write.steps import ADD, NOT_GIVEN, REMOVE, REPLACE, Given, Step, kind_of, read_step
from vedette.registry.write.writer import Writer


class Change:
    """What `registry.change` gives: `add`, `replace` and `remove` gather, and all happens when the block ends.

    Texts and ids are checked then, all together. An error inside the block, or then, leaves the set as it was.
    """

    def __init__(self, database: Database, info: SetInfo, expect_version: int | None = None) -> None:
        self.version: int | None = None  # the new one, once the change is made
        self._database = database
        self._info = info
        self._expect_version = expect_version
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
        low: float | None = NOT_GIVEN,
        high: float | None = NOT_GIVEN,
        within: Any = None,
        rows: Any = None,
        metadata: dict[str, Any] | None = None,
        expires_at: Any = None,
        ttl: Any = None,
    ) -> None:
        """Let a query stand: with a text, with a text and a window, or with a band, as the kind of the set is.

        A band has both its ends, and None is no end.
        """
        self._gather(ADD, [query_id], Given(_one(text), _end(low), _end(high), within, rows, metadata, expires_at, ttl))

    def add_many(
        self,
        ids: Any,
        texts: Any = None,
        *,
        lows: Any = NOT_GIVEN,
        highs: Any = NOT_GIVEN,
        within: Any = None,
        rows: Any = None,
        metadata: Any = None,
        expires_at: Any = None,
        ttl: Any = None,
    ) -> None:
        """Let many queries stand; metadata and ends of life are one for all, or a list with one a query.

        Ends of life may be in a column of pandas or Arrow too. NaT is no end, as None is; what has no time zone, as all
        of NumPy, is refused.
        """
        self._gather(ADD, ids, Given(texts, lows, highs, within, rows, metadata, expires_at, ttl))

    def replace(
        self,
        query_id: str | int,
        text: str | None = None,
        *,
        low: float | None = NOT_GIVEN,
        high: float | None = NOT_GIVEN,
        within: Any = None,
        rows: Any = None,
        metadata: dict[str, Any] | None = None,
        expires_at: Any = None,
        ttl: Any = None,
    ) -> None:
        """Change a query that stands or is parked. It keeps what is not given; expires_at="never" takes an end away."""
        given = Given(_one(text), _end(low), _end(high), within, rows, metadata, expires_at, ttl)
        self._gather(REPLACE, [query_id], given)

    def replace_many(
        self,
        ids: Any,
        texts: Any = None,
        *,
        lows: Any = NOT_GIVEN,
        highs: Any = NOT_GIVEN,
        within: Any = None,
        rows: Any = None,
        metadata: Any = None,
        expires_at: Any = None,
        ttl: Any = None,
    ) -> None:
        """Change many queries. They keep what is not given; in a list, None is no metadata and no end of life."""
        self._gather(REPLACE, ids, Given(texts, lows, highs, within, rows, metadata, expires_at, ttl))

    def remove(self, query_id: str | int) -> None:
        """Let a query stand no longer."""
        self._gather(REMOVE, [query_id], Given())

    def remove_many(self, ids: Any) -> None:
        """Let many queries stand no longer."""
        self._gather(REMOVE, ids, Given())

    def commit(self) -> int:
        """Make the change; the version that it made, or the current one where there was nothing to change."""
        edit = Edit.of(self._steps)
        if not edit and self._expect_version is None:
            self.version = self._info.version
        else:
            self.version = Writer(self._database, edit, self._expect_version).write(self._info)
        self._steps = []
        return self.version

    def _gather(self, action: str, ids: Any, given: Given) -> None:
        step = read_step(action, self._info, ids, given)
        if step.ids:
            self._steps.append(step)
            self._info = dataclasses.replace(self._info, id_kind=self._info.id_kind or kind_of(step.ids))


def _one(value: Any) -> list[Any] | None:
    return None if value is None else [value]


def _end(value: Any) -> Any:
    """An end of one band; one that is not given, or none, is so for all."""
    return value if value is None or value is NOT_GIVEN else [value]
