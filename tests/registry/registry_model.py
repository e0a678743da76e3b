"""A registry's set in plain Python: revisions, each from the version that added it to the version that ended it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Revision:
    query_id: Any
    text: str
    added: int
    removed: int | None = None
    reason: str = "active"
    expires: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class RefusedError(Exception):
    """The model refuses the change; so must the registry."""


class Model:
    def __init__(self) -> None:
        self.version = 0
        self.revisions: list[Revision] = []

    def active(self, version: int | None = None) -> dict[Any, str]:
        at = self.version if version is None else version
        return {
            revision.query_id: revision.text
            for revision in self.revisions
            if revision.added <= at and (revision.removed is None or revision.removed > at)
        }

    def revision(self, query_id: Any) -> Revision | None:
        return next(
            (revision for revision in self.revisions if revision.query_id == query_id and revision.removed is None),
            None,
        )

    def expire(self, now: int) -> None:
        due = [
            revision
            for revision in self.revisions
            if revision.removed is None and revision.expires is not None and revision.expires <= now
        ]
        if due:
            self.version += 1
            for revision in due:
                revision.removed, revision.reason = self.version, "expired"

    def change(self, steps: list[tuple[Any, ...]], now: int) -> None:
        """Steps: ("add", id, text, expires), ("replace", id, text), ("remove", id). All, or none and RefusedError."""
        present = {
            revision.query_id
            for revision in self.revisions
            if revision.removed is None and (revision.expires is None or revision.expires > now)
        }
        for action, query_id, *_ in steps:
            if (query_id in present) == (action == "add"):
                raise RefusedError(query_id)
            present = present | {query_id} if action != "remove" else present - {query_id}
        self.expire(now)
        self.version += 1
        after: dict[Any, tuple[str, int | None]] = {}
        for action, query_id, *values in steps:
            if action == "add":
                after[query_id] = (values[0], values[1])
            elif action == "replace":
                revision = self.revision(query_id)
                expires = after[query_id][1] if query_id in after else revision.expires if revision else None
                after[query_id] = (values[0], expires)
            else:
                after.pop(query_id, None)
        for query_id in dict.fromkeys(step[1] for step in steps):
            revision = self.revision(query_id)
            if revision is not None:
                revision.removed = self.version
                revision.reason = "replaced" if query_id in after else "removed"
            if query_id in after:
                text, expires = after[query_id]
                self.revisions.append(Revision(query_id, text, self.version, expires=expires))
