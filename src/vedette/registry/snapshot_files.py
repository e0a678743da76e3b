"""Where the files of compiled sets are: a directory, whose files are mapped, or any store that Arrow reaches.

A file of a store is copied once to a directory of this host, and mapped there.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from vedette.errors import FileError, RegistryError
from vedette.settings import settings

_AT_ONCE = 8 << 20  # bytes that are copied at a time


class SnapshotFiles:
    """The files at a place: a path, or the address of a store such as s3://bucket/folder."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._store: Any = None
        self._directory = Path(place)
        if "://" in place:
            try:
                store, path = fs.FileSystem.from_uri(place)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise RegistryError(
                    f"cannot use snapshots={place!r}: {error}; give a directory, or such as s3://bucket/folder"
                ) from None
            self._directory = Path(path)
            self._store = None if isinstance(store, fs.LocalFileSystem) else store
            self._folder = path

    def write(self, queries: Any, name: str) -> tuple[str, str, int]:
        """Save a compiled set, as a whole or not at all; the name of its file, its checksum and its bytes."""
        if self._store is None:
            self._make_directory(self._directory)
            path = self._directory / f"{name}.queries"
            for left in self._directory.glob(f".{name.partition('-')[0]}-*"):
                left.unlink(missing_ok=True)  # by a process that was killed; only one writes at a time
            queries.save(path)
            return path.name, _digest(path), path.stat().st_size
        self._make_directory(settings().snapshot_path)
        with tempfile.TemporaryDirectory(prefix="vedette-", dir=settings().snapshot_path) as scratch:
            path = Path(scratch, "queries")
            queries.save(path)
            checksum = _digest(path)
            file = f"{name}-{checksum[:12]}.queries"
            try:
                self._store.create_dir(self._folder, recursive=True)
                with path.open("rb") as source, self._store.open_output_stream(f"{self._folder}/{file}") as target:
                    while piece := source.read(_AT_ONCE):
                        target.write(piece)
            except (pa.ArrowException, OSError) as error:
                raise FileError(f"cannot write the snapshot {file} to {self.place}: {error}") from None
            return file, checksum, path.stat().st_size

    def fetch(self, file: str, checksum: str) -> Path:
        """The path of a file on this host; raises FileError where it is not there, or not as it was written."""
        if self._store is None:
            return self._directory / file
        cache = settings().snapshot_path / "vedette-snapshots"
        self._make_directory(cache)
        path = cache / file
        if path.exists() and _digest(path) == checksum:
            return path
        handle, draft = tempfile.mkstemp(prefix="vedette-", suffix=".part", dir=cache)
        try:
            with os.fdopen(handle, "wb") as target, self._store.open_input_stream(f"{self._folder}/{file}") as source:
                while piece := source.read(_AT_ONCE):
                    target.write(piece)
            if _digest(Path(draft)) != checksum:
                raise FileError(f"the snapshot {file} in {self.place} is damaged: its checksum does not fit")
            os.replace(draft, path)
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"cannot read the snapshot {file} from {self.place}: {error}") from None
        finally:
            Path(draft).unlink(missing_ok=True)
        return path

    def remove(self, file: str) -> None:
        """Delete a file, if it is there."""
        try:
            if self._store is None:
                (self._directory / file).unlink(missing_ok=True)
            else:
                self._store.delete_file(f"{self._folder}/{file}")
        except (pa.ArrowException, OSError):
            pass  # a file too many harms nobody

    def _make_directory(self, directory: Path) -> None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(f"cannot put snapshots into {str(directory)!r}: {error.strerror or error}") from None


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
