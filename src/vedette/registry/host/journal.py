"""The versions that the last batches of a stream saw on this host: what an outage of the database continues with.

Batch n of a stream continues with the version of batch n - 1, never with another one. So all hosts that continue use
the same version. Pins that could not be written stay in the file until the database is back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vedette.host_files.private_files import write_whole
from vedette.registry.read.pinning import UsedPin
from vedette.registry.read.pins import KEPT_BATCHES, Pin

_KEPT_BATCHES = 16


@dataclass(frozen=True)
class Entry:
    """The version that a batch saw."""

    pin: Pin
    run: str | None
    is_written: bool  # the registry has the pin


class Journal:
    """The last batches of one stream that follows a set, in a file."""

    def __init__(self, directory: Path, uid: str, stream: str) -> None:
        name = hashlib.blake2b(f"{uid} {stream}".encode(), digest_size=16).hexdigest()
        self._path = directory / f"{name}.pins"
        self.stream = stream
        self._batches: dict[int, Entry] = {}
        try:
            for batch, pin, run, is_written in json.loads(self._path.read_text()):
                self._batches[int(batch)] = Entry(Pin(**pin), run, bool(is_written))
        except (OSError, ValueError, TypeError):  # there is none, or it is damaged
            self._batches = {}

    def find(self, batch: int) -> Entry | None:
        return self._batches.get(batch)

    def note(self, batch: int, entry: Entry) -> None:
        """Record the version of a batch.

        Old batches are forgotten. Those whose pins the registry lacks are kept as long as the registry keeps pins.
        """
        self._batches[batch] = entry
        for old in sorted(self._batches)[:-_KEPT_BATCHES]:
            if self._batches[old].is_written or old <= batch - KEPT_BATCHES:
                del self._batches[old]
        self._save()

    def used(self) -> list[UsedPin]:
        """The pins that the registry does not have yet, oldest first."""
        return [
            UsedPin(self.stream, batch, each.pin.version, each.run)
            for batch, each in sorted(self._batches.items())
            if not each.is_written
        ]

    def note_written(self, written: Sequence[UsedPin]) -> None:
        """The registry has these pins now."""
        for each in written:
            self._batches[each.batch] = replace(self._batches[each.batch], is_written=True)
        if written:
            self._save()

    def _save(self) -> None:
        entries = [[batch, asdict(each.pin), each.run, each.is_written] for batch, each in self._batches.items()]
        write_whole(self._path, json.dumps(entries).encode())
