"""Where the files of compiled sets are: a directory, whose files are mapped, or any store that Arrow reaches.

A file of a store is copied once to a directory of this host, and mapped there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from vedette.errors import FileError, RegistryError, SnapshotError, VedetteError
from vedette.host_files.account_directory import account_directory
from vedette.host_files.checked_files import file_digest, has_digest
from vedette.host_files.file_lease import FileLease, remove_scratch, scratch_directory
from vedette.host_files.private_files import make_directory
from vedette.registry.snapshots.host_copy import obtain, remove_old
from vedette.settings import settings

DIGEST_BYTES = 16  # of the checksum that the database knows
_AT_ONCE = 8 << 20  # bytes that are copied at a time


class SnapshotFiles:
    """The files at a place: a path, or the address of a store such as s3://bucket/folder. It is shown without secrets.

    It is for one process: what stores keep open does not outlive a fork.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.process = os.getpid()
        self._store: Any = None
        self._leases: dict[str, FileLease] = {}  # by set, on the copy that was fetched last
        self._directory = Path(place)
        if "://" in place:
            try:
                store, path = fs.FileSystem.from_uri(place)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise RegistryError(
                    f"cannot use snapshots={str(self)!r}: {self._without_secrets(error)}; give a directory, or such as "
                    f"s3://bucket/folder"
                ) from None
            self._directory = Path(path)
            self._store = None if isinstance(store, fs.LocalFileSystem) else store
            self._folder = path

    def __str__(self) -> str:
        return show_place(self.place)

    def write(self, queries: Any, name: str) -> tuple[str, str, int]:
        """Save a compiled set, as a whole or not at all; the name of its file, its checksum and its bytes."""
        with self._explained(f"cannot write the snapshot {name} to {self}"):
            if self._store is None:
                make_directory(self._directory)
                path = self._directory / f"{name}.queries"
                for left in self._directory.glob(f".{name.partition('-')[0]}-*"):
                    left.unlink(missing_ok=True)  # by a process that was killed; only one writes at a time
                queries.save(path)
                return path.name, file_digest(path, DIGEST_BYTES), path.stat().st_size
            folder = _own_directory("uploads")
            remove_scratch(folder)
            with scratch_directory(folder) as scratch:
                path = scratch / "queries"
                queries.save(path)
                checksum = file_digest(path, DIGEST_BYTES)
                file = f"{name}-{checksum[:12]}.queries"
                self._store.create_dir(self._folder, recursive=True)
                try:
                    with path.open("rb") as source, self._store.open_output_stream(f"{self._folder}/{file}") as target:
                        while piece := source.read(_AT_ONCE):
                            target.write(piece)
                except BaseException:
                    self.remove(file)  # a stream that ends early leaves what it has
                    raise
                return file, checksum, path.stat().st_size

    def fetch(self, file: str, checksum: str) -> Path:
        """The path of a file on this host.

        Raises FileError where it is not there or cannot be copied, SnapshotError where it is not as it was written.
        """
        if self._store is None:
            path = self._directory / file
            with self._explained(f"cannot read the snapshot {file} from {self}"):
                if not has_digest(path, checksum):
                    raise SnapshotError(f"the snapshot {file} in {self} is damaged: its checksum does not fit")
            return path
        with self._explained(f"cannot read the snapshot {file} from {self}"):
            path = _own_directory("downloads") / file
            lease = obtain(path, lambda copy: has_digest(copy, checksum), lambda target: self._download(file, target))
            uid = file.partition("-")[0]
            before = self._leases.pop(uid, None)
            if before is not None:
                before.release()  # what is mapped stays readable
            self._leases[uid] = lease
            remove_old(path.parent, lambda other: _is_older(other, file))
            return path

    def _download(self, file: str, target: BinaryIO) -> None:
        with self._store.open_input_stream(f"{self._folder}/{file}") as source:
            while piece := source.read(_AT_ONCE):
                target.write(piece)

    def is_damaged(self, file: str, checksum: str) -> bool:
        """Whether a file that was fetched is there, and not as it was written."""
        if self._store is not None:
            return False  # what is not as it was written is not fetched
        try:
            return file_digest(self._directory / file, DIGEST_BYTES) != checksum
        except OSError:
            return False

    def remove(self, file: str) -> None:
        """Delete a file, if it is there."""
        with suppress(pa.ArrowException, OSError):  # a file too many harms nobody
            if self._store is None:
                (self._directory / file).unlink(missing_ok=True)
            else:
                self._store.delete_file(f"{self._folder}/{file}")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Failures of the system and of stores as FileError."""
        try:
            yield
        except VedetteError:
            raise
        except (pa.ArrowException, OSError) as error:
            said = getattr(error, "strerror", None) or error
            named = f" ({error.filename})" if getattr(error, "filename", None) else ""
            raise FileError(f"{what}: {self._without_secrets(said)}{named}") from None

    def _without_secrets(self, said: Any) -> str:
        """What a store says, which may repeat its address."""
        text = str(said).replace(self.place, str(self))
        hidden = self.place.removesuffix(str(self).partition("://")[2])
        pieces = re.split(r"[:/@?&=#]+", hidden)[1:] if str(self) != self.place else []
        for piece in sorted({*pieces, *map(unquote, pieces)}, key=len, reverse=True):
            if piece and piece not in str(self):
                text = text.replace(piece, "***")
        return text


def show_place(place: str) -> str:
    """Where snapshots are, without the keys that an address of a store may hold.

    >>> show_place("s3://KEY:SECRET@bucket/folder?region=us-east-2")
    's3://bucket/folder'
    """
    scheme, is_address, rest = place.partition("://")
    if not is_address:
        return place
    shown = re.split("[?#]", rest)[0]
    if "@" in rest and "@" not in shown:
        return f"{scheme}://***"  # a key with signs that end an address
    return f"{scheme}://{shown.rpartition('@')[2]}"


def place_of(given: str | None, database_file: Path | None) -> str:
    """Where the snapshots of a registry are: as was given, beside the file of its database, or as settings say.

    Without any of these, in the directory of this account on this host.
    """
    if given is not None:
        return str(given)
    if database_file is not None:
        return f"{database_file.resolve()}.snapshots"
    try:
        return settings().snapshot_dir or str(account_directory("bases"))
    except OSError as error:
        raise FileError(
            f"cannot keep snapshots in the temporary directory: {error.strerror}; give the registry snapshots=, or set "
            f"snapshot_dir"
        ) from None


def _own_directory(name: str) -> Path:
    """A directory for copies of a store's files, which only this account uses."""
    if settings().snapshot_dir:
        make_directory(settings().snapshot_dir)
    return account_directory(name, settings().snapshot_dir or None)


def _is_older(file: str, than: str) -> bool:
    """Whether a file, <uid>-<version>-<checksum>, is of an older base of the same set."""
    (uid, _, number), (own, _, version) = (each.rpartition("-")[0].partition("-") for each in (file, than))
    return uid == own and number.isdigit() and version.isdigit() and int(number) < int(version)
