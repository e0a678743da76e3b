"""A line of versions of a set on this host: a compiled base, and the changes since, as files that workers map."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vedette.errors import FileError
from vedette.host_files.leader import remove_old_jobs
from vedette.queries.set_changes import Changes
from vedette.registry.read.set_info import SetInfo
from vedette.registry.snapshots.change_files import read_changes_file, write_changes

UNUSED_SECONDS = 900.0  # files that nobody asked for in this time are deleted
KEPT_SECONDS = 30 * 86_400.0  # the same, for other sets and for pins
_MOST_STEPS = 64  # files of a line before they are joined


@dataclass(frozen=True)
class Base:
    """A compiled set that workers of this host can map."""

    version: int
    mark: int
    oldest: int  # the oldest version whose later changes it knows
    n_queries: int
    file: str  # in the registry's place for snapshots; if `checksum` is empty, in the directory of this host
    checksum: str
    n_bytes: int


@dataclass(frozen=True)
class Step:
    """A file with the changes after one version up to another."""

    since: int
    until: int
    file: str


class Line:
    """A base and all changes up to the version `until`. Its files are in `directory`."""

    def __init__(self, directory: Path, info: SetInfo, base: Base, steps: Sequence[Step] = ()) -> None:
        """Raises VedetteError if a file of a step cannot be read."""
        self.directory = directory
        self.info = info
        self.base = base
        self.steps = list(steps)
        parts, until = [], base.version
        for each in steps:
            if each.since != until:
                raise FileError(f"the changes of set {info.name!r} after version {until} are missing")
            parts.append(read_changes_file(directory / each.file, each.since, each.until, info))
            until = each.until
        self._changes = Changes.concat(parts) if parts else None

    @property
    def until(self) -> int:
        """The last version."""
        return self.base.version if self._changes is None else int(self._changes.versions[-1])

    @property
    def n_changes(self) -> int:
        """The number of queries that were added or removed since the base."""
        return 0 if self._changes is None else self._changes.n_added + self._changes.n_removed

    def mark_of(self, version: int) -> int | None:
        """The mark of a version; None if it is not in this line."""
        if version == self.base.version:
            return self.base.mark
        if self._changes is None or not self.base.version < version <= self.until:
            return None
        return int(self._changes.marks[version - self.base.version - 1])

    def extend(self, changes: Changes) -> None:
        """Append the changes after `until`."""
        if not len(changes):
            return
        self.steps.append(self._write(self.until, changes))
        self._changes = changes if self._changes is None else Changes.concat([self._changes, changes])
        if len(self.steps) > _MOST_STEPS:
            self.steps = [self._write(self.base.version, self._changes, is_compiled=False)]

    def publish(self, since: int, until: int) -> Step | None:
        """A file with the changes after one version of the line up to another; None if there are none."""
        if since == until or self._changes is None:
            return None
        changes = self._changes.between(since, until)
        step = self._step(since, changes)
        try:
            os.utime(self.directory / step.file)  # it is in use
        except FileNotFoundError:
            return self._write(since, changes)
        return step

    def _write(self, since: int, changes: Changes, *, is_compiled: bool = True) -> Step:
        step = self._step(since, changes)
        write_changes(changes, self.directory / step.file, self.info, is_compiled=is_compiled)
        return step

    def _step(self, since: int, changes: Changes) -> Step:
        """A mark is random, so the changes of another history have another name."""
        until, mark = int(changes.versions[-1]), int(changes.marks[-1])
        return Step(since, until, f"{prefix_of(self.info)}-{since}-{until}-{mark:x}.changes")

    # What another leader needs to continue.

    def to_plain(self) -> dict[str, Any]:
        return {"base": asdict(self.base), "steps": [asdict(each) for each in self.steps]}

    @classmethod
    def from_plain(cls, directory: Path, info: SetInfo, plain: dict[str, Any]) -> Line:
        """Raises VedetteError, TypeError or KeyError if it is damaged or its files are missing."""
        base = Base(**plain["base"])
        if not base.checksum and not (directory / base.file).exists():
            raise FileError(f"the base {base.file} is missing")
        return cls(directory, info, base, [Step(**each) for each in plain["steps"]])

    @property
    def files(self) -> set[str]:
        """The files in the host's directory that this line needs."""
        return {each.file for each in self.steps} | ({self.base.file} if not self.base.checksum else set())


def prefix_of(info: SetInfo) -> str:
    """The first part of the names of all files of a set with its schema."""
    return f"{info.uid}-{info.schema_version}"


def remove_unused(directory: Path, prefix: str, needed: set[str]) -> None:
    """Delete files that no line needs and nobody asked for lately. Processes that map them keep them.

    Files of other sets are deleted only after days: their leader may be another process.
    """
    remove_old_jobs(directory)
    for path in directory.iterdir():
        is_own = path.name.removeprefix(".").startswith(f"{prefix}-")
        if path.suffix not in (".lock", ".socket") and path.name not in needed:
            with suppress(OSError):
                age = time.time() - path.stat().st_mtime
                if age > (UNUSED_SECONDS if is_own else KEPT_SECONDS):
                    path.unlink()
