"""A registry's set in plain Python: a list of lives, each from the version that added it to the one that ended it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Life:
    query_id: Any
    text: str
    added: int
    removed: int | None = None
    reason: str = "standing"
    expires: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class RefusedError(Exception):
    """The model refuses the change; so must the registry."""


class Model:
    def __init__(self) -> None:
        self.version = 0
        self.lives: list[Life] = []

    def standing(self, version: int | None = None) -> dict[Any, str]:
        at = self.version if version is None else version
        return {
            life.query_id: life.text
            for life in self.lives
            if life.added <= at and (life.removed is None or life.removed > at)
        }

    def life(self, query_id: Any) -> Life | None:
        return next((life for life in self.lives if life.query_id == query_id and life.removed is None), None)

    def expire(self, now: int) -> None:
        due = [life for life in self.lives if life.removed is None and life.expires is not None and life.expires <= now]
        if due:
            self.version += 1
            for life in due:
                life.removed, life.reason = self.version, "expired"

    def change(self, steps: list[tuple[Any, ...]], now: int) -> None:
        """Steps: ("add", id, text, expires), ("replace", id, text), ("remove", id). All, or none and RefusedError."""
        present = {
            life.query_id
            for life in self.lives
            if life.removed is None and (life.expires is None or life.expires > now)
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
                life = self.life(query_id)
                expires = after[query_id][1] if query_id in after else life.expires if life else None
                after[query_id] = (values[0], expires)
            else:
                after.pop(query_id, None)
        for query_id in dict.fromkeys(step[1] for step in steps):
            life = self.life(query_id)
            if life is not None:
                life.removed = self.version
                life.reason = "replaced" if query_id in after else "removed"
            if query_id in after:
                text, expires = after[query_id]
                self.lives.append(Life(query_id, text, self.version, expires=expires))
