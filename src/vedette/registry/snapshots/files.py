"""The files of compiled sets, in a directory or in any object store that Arrow supports.

Files in a directory are mapped. A file in a store is copied once to a directory of this host, and mapped there.
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

DIGEST_BYTES = 16  # of the checksum in the database
_CHUNK = 8 << 20  # bytes that are copied at a time


class SnapshotFiles:
    """The files at a place: a path, or the address of a store such as s3://bucket/folder. Its str has no secrets.

    A fork needs its own: connections to stores do not survive it.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self.process = os.getpid()
        self._store: Any = None
        self._leases: dict[str, FileLease] = {}  # by set, on the last fetched copy
        self._directory = Path(place)
        if "://" in place:
            try:
                store, path = fs.FileSystem.from_uri(place)
            except (pa.ArrowException, OSError, ValueError) as error:
                raise RegistryError(
                    f"cannot use snapshots={str(self)!r}: {self._without_secrets(error)}; give a directory, or an "
                    f"address such as s3://bucket/folder"
                ) from None
            self._directory = Path(path)
            self._store = None if isinstance(store, fs.LocalFileSystem) else store
            self._folder = path

    def __str__(self) -> str:
        return show_place(self.place)

    def write(self, queries: Any, name: str) -> tuple[str, str, int]:
        """Save a compiled set atomically; returns the name of its file, its checksum and its size in bytes."""
        with self._explained(f"cannot write the snapshot {name} to {self}"):
            if self._store is None:
                make_directory(self._directory)
                path = self._directory / f"{name}.queries"
                for left in self._directory.glob(f".{name.partition('-')[0]}-*"):
                    left.unlink(missing_ok=True)  # a killed process left it; only one process writes at a time
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
                        while piece := source.read(_CHUNK):
                            target.write(piece)
                except BaseException:
                    self.remove(file)  # an interrupted stream leaves a partial file
                    raise
                return file, checksum, path.stat().st_size

    def fetch(self, file: str, checksum: str) -> Path:
        """The path of a file on this host.

        Raises FileError if it is missing or cannot be copied, SnapshotError if its checksum is wrong.
        """
        if self._store is None:
            path = self._directory / file
            with self._explained(f"cannot read the snapshot {file} from {self}"):
                if not has_digest(path, checksum):
                    raise SnapshotError(f"the snapshot {file} in {self} is damaged: its checksum is wrong")
            return path
        with self._explained(f"cannot read the snapshot {file} from {self}"):
            path = _own_directory("downloads") / file
            lease = obtain(path, lambda copy: has_digest(copy, checksum), lambda target: self._download(file, target))
            uid = file.partition("-")[0]
            before = self._leases.pop(uid, None)
            if before is not None:
                before.release()  # a mapped file stays readable
            self._leases[uid] = lease
            remove_old(path.parent, lambda other: _is_older(other, file))
            return path

    def _download(self, file: str, target: BinaryIO) -> None:
        with self._store.open_input_stream(f"{self._folder}/{file}") as source:
            while piece := source.read(_CHUNK):
                target.write(piece)

    def is_damaged(self, file: str, checksum: str) -> bool:
        """Whether a fetched file exists and its checksum is wrong."""
        if self._store is not None:
            return False  # `fetch` does not return a damaged copy
        try:
            return file_digest(self._directory / file, DIGEST_BYTES) != checksum
        except OSError:
            return False

    def remove(self, file: str) -> None:
        """Delete a file, if it exists."""
        with suppress(pa.ArrowException, OSError):  # an extra file does no harm
            if self._store is None:
                (self._directory / file).unlink(missing_ok=True)
            else:
                self._store.delete_file(f"{self._folder}/{file}")

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Raise FileError for failures of the system and of stores."""
        try:
            yield
        except VedetteError:
            raise
        except (pa.ArrowException, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            named = f" ({error.filename})" if getattr(error, "filename", None) else ""
            raise FileError(f"{what}: {self._without_secrets(reason)}{named}") from None

    def _without_secrets(self, message: Any) -> str:
        """A store's message without secrets: it may repeat the address."""
        text = str(message).replace(self.place, str(self))
        hidden = self.place.removesuffix(str(self).partition("://")[2])
        pieces = re.split(r"[:/@?&=#]+", hidden)[1:] if str(self) != self.place else []
        for piece in sorted({*pieces, *map(unquote, pieces)}, key=len, reverse=True):
            if piece and piece not in str(self):
                text = text.replace(piece, "***")
        return text


def show_place(place: str) -> str:
    """The place of snapshots, without the keys that the address of a store may contain.

    >>> show_place("s3://KEY:SECRET@bucket/folder?region=us-east-2")
    's3://bucket/folder'
    """
    scheme, is_address, rest = place.partition("://")
    if not is_address:
        return place
    shown = re.split("[?#]", rest)[0]
    if "@" in rest and "@" not in shown:
        return f"{scheme}://***"  # a key that contains ? or #
    return f"{scheme}://{shown.rpartition('@')[2]}"


def place_of(given: str | None, database_file: Path | None) -> str:
    """The place of a registry's snapshots: as given, else next to the file of its database, else as the settings say.

    If none of these is set, it is the directory of this account on this host.
    """
    if given is not None:
        return str(given)
    if database_file is not None:
        return f"{database_file.resolve()}.snapshots"
    try:
        return settings().snapshot_dir or str(account_directory("bases"))
    except OSError as error:
        raise FileError(
            f"cannot store snapshots in the temporary directory: {error.strerror}; open the registry with snapshots=, "
            f"or set snapshot_dir"
        ) from None


def _own_directory(name: str) -> Path:
    """A private directory of this account, for copies of a store's files."""
    if settings().snapshot_dir:
        make_directory(settings().snapshot_dir)
    return account_directory(name, settings().snapshot_dir or None)


def _is_older(file: str, than: str) -> bool:
    """Whether a file, <uid>-<version>-<checksum>, is an older base of the same set."""
    (uid, _, number), (own, _, version) = (each.rpartition("-")[0].partition("-") for each in (file, than))
    return uid == own and number.isdigit() and version.isdigit() and int(number) < int(version)
