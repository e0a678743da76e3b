"""The log of the batches that a monitor has accepted: one append-only file, with a checksum per record.

A record is a batch as it was received, with the version of the queries that it was evaluated with. To repeat the
records after a snapshot gives the same state and the same events. The last record may be torn by a crash: nobody was
told that it was accepted, so it is cut off. Damage before the last record is an error.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vedette.errors import SnapshotError
from vedette.host_files.private_files import create_file

_HEADER = struct.Struct("<4sII")  # magic, length of the payload, its CRC
_MAGIC = b"vdl1"
_FIXED = struct.Struct("<QQqQIH")  # batch, version, mark, first event, events, bodies
_BODY = struct.Struct("<BI")  # form, length
_HAS_SIDE = 0x80  # a bit of the form: the data begin with the length of a side's name, and the name


@dataclass(frozen=True)
class Body:
    """Rows as they were received."""

    form: int  # one of vedette.serve.bodies.FORMS, or MOMENT
    data: bytes
    side: str = ""  # the stream of all rows, if the request names one

    def to_pieces(self) -> list[bytes]:
        if not self.side:
            return [_BODY.pack(self.form, len(self.data)), self.data]
        name = self.side.encode()
        n_bytes = 1 + len(name) + len(self.data)
        return [_BODY.pack(self.form | _HAS_SIDE, n_bytes), bytes([len(name)]), name, self.data]

    @classmethod
    def of_bytes(cls, form: int, data: memoryview) -> Body:
        if not form & _HAS_SIDE:
            return cls(form, bytes(data))
        start = 1 + data[0]
        return cls(form & ~_HAS_SIDE, bytes(data[start:]), bytes(data[1:start]).decode())


@dataclass(frozen=True)
class Record:
    """One step of a monitor."""

    batch: int  # numbers from 1, without gaps
    version: int  # of the queries
    mark: int  # of that version
    first_event: int  # the sequence number of the first event
    n_events: int
    bodies: tuple[Body, ...]  # the requests that were processed together

    def to_bytes(self) -> bytes:
        pieces = [_FIXED.pack(self.batch, self.version, self.mark, self.first_event, self.n_events, len(self.bodies))]
        for body in self.bodies:
            pieces += body.to_pieces()
        payload = b"".join(pieces)
        return _HEADER.pack(_MAGIC, len(payload), zlib.crc32(payload)) + payload

    @classmethod
    def of_bytes(cls, payload: memoryview) -> Record:
        batch, version, mark, first_event, n_events, n_bodies = _FIXED.unpack_from(payload)
        bodies, place = [], _FIXED.size
        for _ in range(n_bodies):
            form, length = _BODY.unpack_from(payload, place)
            place += _BODY.size
            bodies.append(Body.of_bytes(form, payload[place : place + length]))
            place += length
        return cls(batch, version, mark, first_event, n_events, tuple(bodies))


class RowLog:
    """An open log. `append` collects records, and `commit` writes them together."""

    def __init__(self, path: Path, *, sync: bool) -> None:
        """Open a log, or create it. `sync`: a record is on the disk before `commit` returns, also if power fails."""
        self.path = path
        self._sync = sync
        with suppress(FileExistsError):
            create_file(path).close()
            if sync:
                sync_directory(path.parent)
        self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        self._waiting: list[bytes] = []
        self.n_bytes = os.fstat(self._handle).st_size

    def read(self) -> Iterator[Record]:
        """The records from the beginning. A torn last record is cut off. Raises SnapshotError if another is damaged."""
        data = self.path.read_bytes()
        place = 0
        while place < len(data):
            end = _end_of(data, place)
            if end is None:
                if _has_record_after(data, place):
                    raise SnapshotError(
                        f"the log {self.path} is damaged at byte {place:,}: records that were accepted later follow; "
                        f"restore the file from a backup, or delete the monitor of the set to begin without state"
                    )
                os.ftruncate(self._handle, place)
                if self._sync:
                    os.fsync(self._handle)
                self.n_bytes = place
                return
            yield Record.of_bytes(memoryview(data)[place + _HEADER.size : end])
            place = end

    def append(self, record: Record) -> None:
        """Add a record to those that the next `commit` writes."""
        self._waiting.append(record.to_bytes())

    def commit(self) -> None:
        """Write the waiting records. Raises OSError, and leaves the log as it was, if that fails."""
        if not self._waiting:
            return
        data = b"".join(self._waiting)
        self._waiting = []
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._handle, view) :]
            if self._sync:
                os.fdatasync(self._handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, self.n_bytes)
            raise
        self.n_bytes += len(data)

    def close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def _end_of(data: bytes, place: int) -> int | None:
    """Where the record at a place ends; None if it is incomplete or damaged."""
    if place + _HEADER.size > len(data):
        return None
    magic, length, crc = _HEADER.unpack_from(data, place)
    end = place + _HEADER.size + int(length)
    if magic != _MAGIC or end > len(data) or length < _FIXED.size:
        return None
    return end if zlib.crc32(memoryview(data)[place + _HEADER.size : end]) == crc else None


def _has_record_after(data: bytes, place: int) -> bool:
    """Whether a complete record begins somewhere after a place."""
    while (place := data.find(_MAGIC, place + 1)) >= 0:
        if _end_of(data, place) is not None:
            return True
    return False


def sync_directory(path: Path) -> None:
    """Make the names of new files in a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, pieces: Sequence[bytes]) -> None:
    """Write a file as a whole or not at all, and onto the disk."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with create_file(temporary) as file:
        for piece in pieces:
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_directory(path.parent)
