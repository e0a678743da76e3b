"""What the leader of a host does for one followed set: it pins batches, reads changes once, and publishes them.

The others get the name of a base and of a file of changes. All that the leader knows is also in files, so that the next
leader continues without asking the database again.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.errors import RegistryError, VedetteError
from vedette.host_files.private_files import write_whole
from vedette.registry.host.journal import Entry, Journal
from vedette.registry.host.line import Base, Line, prefix_of, remove_unused
from vedette.registry.read.followed import LAST
from vedette.registry.read.pinning import Known
from vedette.registry.read.pins import Pin
from vedette.registry.read.reader import HistoryError, read_changes
from vedette.registry.snapshots.bases import is_outdated

if TYPE_CHECKING:
    from vedette.registry.read.followed import Followed

COMPACTION_SECONDS = 30.0  # between two attempts to write or to find a newer base
CLEANING_SECONDS = 60.0  # between two searches for files that nobody needs
PROBE_SECONDS = 10.0  # between two attempts to reach the database during an outage
_PROBE_RETRY_SECONDS = 0.5
_KEPT_PINS = 64
_KEPT_LINES = 3
_KEPT_JOURNALS = 64
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ask:
    """What a worker asks: the version of a batch, or a fixed one, and how to get there from what it has."""

    stream: str | None  # None: `version` is fixed
    batch: int = 0
    run: str | None = None
    version: int | None = None
    mark: int | None = None
    known: int | None = None  # the version of the worker's set, if it has one
    known_mark: int | None = None
    base: int = -1  # the version of the base of that set
    n_changes: int = 0  # since that base
    since: int | None = None  # the set must know the changes after this version
    unusable: int | None = None  # a base that the worker could not read
    outage: str = "stop"


@dataclass(frozen=True)
class Told:
    """The answer: the version, and how to get there. Without a base, the changes continue what the worker has."""

    version: int
    mark: int | None
    base: dict[str, Any] | None
    changes: dict[str, Any] | None


class SetOnHost:
    """A followed set in the leader's process."""

    def __init__(self, followed: Followed, directory: Path) -> None:
        self._followed = followed
        self._directory = directory
        self._prefix = prefix_of(followed.info)
        self._lock = threading.Lock()
        self._lines: list[Line] = []  # the newest last
        self._pins: OrderedDict[tuple[str, int, str | None], Pin] = OrderedDict()
        self._journals: OrderedDict[str, Journal] = OrderedDict()
        self._out_since: float | None = None  # the start of an outage, in seconds since 1970
        self._probe_at = 0.0
        self._n_last = 0  # batches that continued with the last version in this outage
        self._cleaned_at = -CLEANING_SECONDS  # at once, because a leader may live for one batch only
        self._compacted_at = -COMPACTION_SECONDS
        self._load()

    def answer(self, ask: Ask) -> Told:
        """Raises VedetteError as the database does."""
        with self._lock:
            self._lines = [line for line in self._lines if line.base.version != ask.unusable]
            version, mark = ask.version, ask.mark
            if ask.stream is not None:
                pin = self._pin(ask.stream, ask)
                version, mark = pin.version, pin.mark
            assert version is not None
            line = self._find_line(version, mark, ask.since)
            told = self._describe(ask, line, version)
            self._maintain()
            return told

    # Pins.

    def _pin(self, stream: str, ask: Ask) -> Pin:
        key = (stream, ask.batch, ask.run)
        if key not in self._pins:
            journal = self._journal(stream)
            if self._out_since is not None and ask.outage == LAST and time.monotonic() < self._probe_at:
                pin = self._use_last(journal, ask, None)
            else:
                try:
                    pin = self._ask_database(journal, ask)
                except RegistryError as error:
                    if not error.is_retryable or ask.outage != LAST:
                        raise
                    pin = self._use_last(journal, ask, error)
            self._pins[key] = pin
            while len(self._pins) > _KEPT_PINS:
                self._pins.popitem(last=False)
        return self._pins[key]

    def _ask_database(self, journal: Journal, ask: Ask) -> Pin:
        """The pin of a batch; the changes up to it are appended to the newest line."""
        newest = self._lines[-1] if self._lines else None
        known = None if newest is None else Known(newest.until, newest.mark_of(newest.until) or 0)
        used, is_probe = journal.used(), self._out_since is not None and ask.outage == LAST
        pin, changes = self._followed.pin_and_read(
            journal.stream,
            ask.batch,
            ask.run,
            known,
            used=used,
            retry_seconds=_PROBE_RETRY_SECONDS if is_probe else None,
        )
        journal.note_written(used)
        if self._out_since is not None:
            seconds = time.time() - self._out_since
            _log.warning("the registry can be reached again after %.0f seconds; its pins are up to date", seconds)
            self._out_since, self._n_last = None, 0
        if newest is not None and changes is not None:
            newest.extend(changes)
        elif newest is not None:
            is_earlier = pin.version < newest.until and newest.mark_of(pin.version) in (None, pin.mark)
            if not is_earlier:  # its changes are forgotten, or the database was restored to an older state
                self._lines.clear()
        journal.note(ask.batch, Entry(pin, ask.run, True))
        self._save()
        return pin

    def _use_last(self, journal: Journal, ask: Ask, error: RegistryError | None) -> Pin:
        """The version of the previous batch. `error` says why the database cannot be asked."""
        entry = journal.find(ask.batch) or journal.find(ask.batch - 1)
        if entry is None or self._line_with(entry.pin.version, entry.pin.mark, None) is None:
            reason = f"{error}. " if error is not None else "the registry's database cannot be reached. "
            raise RegistryError(
                f"{reason}Batch {ask.batch} of stream {journal.stream!r} cannot continue with the last version, as "
                f"on_registry_outage='last' asks: this host has not answered batch {ask.batch - 1}, so it does not "
                f"know which version of set {self._followed.name!r} that batch saw",
                is_retryable=True,
            ) from None
        if self._out_since is None:
            self._out_since = time.time()
        if error is not None:
            self._probe_at = time.monotonic() + PROBE_SECONDS
        if journal.find(ask.batch) is None:
            journal.note(ask.batch, Entry(entry.pin, ask.run, False))
        self._n_last += 1
        _log.warning(
            "batch %d of stream %r continues with version %d of set %r, the last known one; the registry has been "
            "unreachable for %.0f seconds, and this is batch number %d of this outage%s",
            ask.batch,
            journal.stream,
            entry.pin.version,
            self._followed.name,
            time.time() - self._out_since,
            self._n_last,
            "" if error is None else f": {error}",
        )
        return entry.pin

    def _journal(self, stream: str) -> Journal:
        if stream not in self._journals:
            self._journals[stream] = Journal(self._directory, self._followed.uid, stream)
            while len(self._journals) > _KEPT_JOURNALS:
                self._journals.popitem(last=False)
        return self._journals[stream]

    # Lines.

    def _find_line(self, version: int, mark: int | None, since: int | None) -> Line:
        """A line that has a version."""
        newest = self._lines[-1] if self._lines else None
        if newest is not None and version > newest.until:
            try:
                newest.extend(self._read(newest, version))
            except HistoryError:
                self._lines.pop()
        return self._line_with(version, mark, since) or self._begin(version, since)

    def _line_with(self, version: int, mark: int | None, since: int | None) -> Line | None:
        for line in reversed(self._lines):
            found = line.mark_of(version)
            if found is not None and mark in (None, found) and (since is None or since >= line.base.oldest):
                return line
        return None

    def _begin(self, version: int, since: int | None = None) -> Line:
        """A new line, with the newest base up to a version. Without one, this host gets its own."""
        opened = self._followed.bases.open_base(version, since)
        queries, snapshot = opened.queries, opened.snapshot
        mark, oldest = int(queries.history_mark(opened.base)), int(getattr(queries, "oldest_version", 0))
        if snapshot is None:
            file, checksum = f"{self._prefix}-{opened.base}-{mark:x}-{oldest}.queries", ""
            queries.save(self._directory / file)
            n_bytes = (self._directory / file).stat().st_size
        else:
            file, checksum, n_bytes = snapshot.file, snapshot.checksum, snapshot.n_bytes
        base = Base(opened.base, mark, oldest, len(queries), file, checksum, n_bytes)
        line = Line(self._directory, self._followed.info, base)
        if version > opened.base:
            line.extend(self._read(line, version))
        self._lines = sorted([*self._lines[1 - _KEPT_LINES :], line], key=lambda each: each.base.version)
        self._save()
        return line

    def _read(self, line: Line, version: int) -> Any:
        """The changes from the end of a line to a version."""
        registry, info = self._followed.registry, self._followed.info
        return read_changes(registry.database, info, line.until, version, line.mark_of(line.until))

    def _describe(self, ask: Ask, line: Line, version: int) -> Told:
        """How the worker gets to a version of a line."""
        mark, known = line.mark_of(version), ask.known
        is_old = ask.base < line.base.version and is_outdated(ask.n_changes, line.base.n_queries)
        if known is None or known > version or is_old or line.mark_of(known) != ask.known_mark:
            step = line.publish(line.base.version, version)
            return Told(version, mark, asdict(line.base), None if step is None else asdict(step))
        step = line.publish(known, version)
        return Told(version, mark, None, None if step is None else asdict(step))

    def _maintain(self) -> None:
        """Now and then: write or find a newer base, and delete old files."""
        now = time.monotonic()
        line = self._lines[-1]
        is_due = self._out_since is None and now > self._compacted_at + COMPACTION_SECONDS
        if is_due and is_outdated(line.n_changes, line.base.n_queries):
            self._compacted_at = now
            try:
                if self._followed.bases.has_newer(line.base.version, line.until):
                    self._begin(line.until)
                else:
                    self._followed.bases.compact_soon(line.until)
            except VedetteError as error:
                _log.warning("cannot find a newer base of set %r: %s", self._followed.name, error)
        if now > self._cleaned_at + CLEANING_SECONDS:
            self._cleaned_at = now
            remove_unused(self._directory, self._prefix, {file for each in self._lines for file in each.files})

    # What the next leader continues with.

    @property
    def _state(self) -> Path:
        return self._directory / f"{self._prefix}.line"

    def _save(self) -> None:
        if self._lines:
            write_whole(self._state, json.dumps(self._lines[-1].to_plain()).encode())

    def _load(self) -> None:
        try:
            plain = json.loads(self._state.read_bytes())
            self._lines = [Line.from_plain(self._directory, self._followed.info, plain)]
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError, KeyError, VedetteError) as error:
            _log.warning("the files of set %r on this host are written again: %s", self._followed.name, error)
