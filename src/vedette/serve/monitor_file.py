"""The files of a monitor in the state directory: its options, its snapshots, and the log of rows after each of them.

monitor.json       the options, as they were given
snapshot-N         the state after batch N, and the recent events
rows-N.log         the batches after batch N

Beside the directory, its name with .next-event has the number of the next event, once a monitor was deleted.

A snapshot is written as a whole before the next log begins, so at every moment the newest snapshot and the logs from it
on are the whole state.
"""

from __future__ import annotations

import json
import re
import shutil
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vedette.errors import SnapshotError
from vedette.host_files.private_files import make_directory
from vedette.serve.arrow_streams import write_stream
from vedette.serve.row_log import sync_directory, write_durably

_MAGIC = b"vds1"
_HEADER = struct.Struct("<4sQQI")  # magic, bytes of the facts, bytes of the state, CRC of all that follows
_SNAPSHOT = re.compile(r"snapshot-(\d+)")


@dataclass(frozen=True)
class Snapshot:
    """The state after a batch."""

    batch: int
    version: int  # of the queries
    next_event: int
    state: bytes  # of the monitor
    events: list[tuple[int, pa.Table]]  # the recent ones, by the sequence number of the first

    def to_pieces(self) -> list[bytes]:
        streams = [(first, write_stream(table)) for first, table in self.events]
        facts = {
            "batch": self.batch,
            "version": self.version,
            "next_event": self.next_event,
            "events": [[first, len(stream)] for first, stream in streams],
        }
        written = json.dumps(facts).encode()
        pieces = [written, self.state, *(stream for _, stream in streams)]
        crc = 0
        for piece in pieces:
            crc = zlib.crc32(piece, crc)
        return [_HEADER.pack(_MAGIC, len(written), len(self.state), crc), *pieces]

    @classmethod
    def read(cls, path: Path) -> Snapshot:
        data = path.read_bytes()
        damaged = SnapshotError(f"the snapshot {path} is damaged; restore it from a backup")
        if len(data) < _HEADER.size:
            raise damaged
        magic, n_facts, n_state, crc = _HEADER.unpack_from(data)
        rest = memoryview(data)[_HEADER.size :]
        if magic != _MAGIC or zlib.crc32(rest) != crc:
            raise damaged
        facts: dict[str, Any] = json.loads(bytes(rest[:n_facts]))
        place = n_facts + n_state
        events = []
        for first, length in facts["events"]:
            with pa.ipc.open_stream(rest[place : place + length]) as reader:
                events.append((first, reader.read_all()))
            place += length
        state = bytes(rest[n_facts : n_facts + n_state])
        return cls(facts["batch"], facts["version"], facts["next_event"], state, events)


class MonitorFile:
    """The files of one monitor."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def exists(self) -> bool:
        return self._options.exists()

    @property
    def _options(self) -> Path:
        return self.directory / "monitor.json"

    def create(self, options: dict[str, Any], first: Snapshot) -> None:
        """Write the first files. A monitor exists once its options are written."""
        if self.directory.exists():
            shutil.rmtree(self.directory)  # what an interrupted `delete` has left
        make_directory(self.directory)
        sync_directory(self.directory.parent)
        self.write_snapshot(first)
        write_durably(self._options, [json.dumps(options).encode()])

    @property
    def _numbers_file(self) -> Path:
        """Beside the directory: the number of the next event, after the monitor is deleted."""
        return self.directory.with_name(f"{self.directory.name}.next-event")

    def read_next_event(self) -> int:
        """The number that the events of a new monitor begin with: those of a deleted one are not used again."""
        try:
            return int(self._numbers_file.read_bytes())
        except FileNotFoundError:
            return 1
        except ValueError:
            raise SnapshotError(f"the file {self._numbers_file} is damaged; restore it from a backup") from None

    def read_options(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self._options.read_bytes())
        return read

    def delete(self, next_event: int) -> None:
        """Delete the state. The number of the next event stays."""
        write_durably(self._numbers_file, [str(next_event).encode()])
        self._options.unlink(missing_ok=True)  # first: without it there is no monitor
        shutil.rmtree(self.directory, ignore_errors=True)

    def forget(self) -> None:
        """Delete what `delete` has left: there will be no other monitor."""
        self._numbers_file.unlink(missing_ok=True)

    def read_snapshot(self) -> Snapshot:
        """The newest snapshot."""
        numbers = self._numbers()
        if not numbers:
            raise SnapshotError(f"the state in {self.directory} has no snapshot; restore it from a backup")
        return Snapshot.read(self.directory / f"snapshot-{numbers[-1]}")

    def write_snapshot(self, snapshot: Snapshot) -> None:
        write_durably(self.directory / f"snapshot-{snapshot.batch}", snapshot.to_pieces())

    def log_path(self, batch: int) -> Path:
        return self.directory / f"rows-{batch}.log"

    def remove_before(self, batch: int) -> None:
        """Delete the files that the snapshot of a batch replaces."""
        for number in self._numbers():
            if number < batch:
                self.log_path(number).unlink(missing_ok=True)
                (self.directory / f"snapshot-{number}").unlink(missing_ok=True)

    def _numbers(self) -> list[int]:
        found = [_SNAPSHOT.fullmatch(path.name) for path in self.directory.iterdir()]
        return sorted(int(each[1]) for each in found if each)
