"""Dead letters in a folder of Parquet files, one per task of a micro-batch that had any. Spark can read the folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from vedette.delivery.dead_letters import Letter, Part
from vedette.errors import FileError, VedetteError
from vedette.host_files.private_files import make_directory, write_whole
from vedette.registry.snapshots.files import show_place

_SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "kind": pa.string(),
        "source": pa.string(),
        "body": pa.string(),
        "reason": pa.string(),
        "failed_at": pa.timestamp("us", "UTC"),
        "url": pa.string(),
        "group": pa.string(),
        "status": pa.int32(),
        "attempts": pa.int32(),
        "stream": pa.string(),
        "batch": pa.int64(),
    }
)


class ParquetLetters:
    def __init__(self, place: str) -> None:
        self._place = place
        self._store: Any = None
        self._folder = place
        if "://" in place:
            with self._explained("use"):
                store, self._folder = fs.FileSystem.from_uri(place)
                self._store = None if isinstance(store, fs.LocalFileSystem) else store

    def __str__(self) -> str:
        return show_place(self._place)

    def write(self, part: Part, letters: Sequence[Letter]) -> None:
        name = f"{part.stream or 'batch'}-{part.batch or 0:09}-{part.task}"
        file = f"letters-{hashlib.blake2b(name.encode(), digest_size=10).hexdigest()}-{part.batch or 0:09}.parquet"
        with self._explained("write"):
            if letters or self._exists(file):
                self._write_file(file, letters)

    def read(self) -> Iterator[Letter]:
        with self._explained("read"):
            for file in self._files():
                yield from self._read_file(file)

    def remove(self, letters: Iterable[Letter]) -> int:
        gone = {(each.source, each.id) for each in letters}
        return self._rewrite(lambda letter: None if (letter.source, letter.id) in gone else letter)

    def update(self, letters: Iterable[Letter]) -> None:
        new = {(each.source, each.id): each for each in letters}
        self._rewrite(lambda letter: new.get((letter.source, letter.id), letter))

    def _rewrite(self, change: Callable[[Letter], Letter | None]) -> int:
        """Replace each letter, or delete it; returns how many were deleted."""
        n_removed = 0
        with self._explained("write"):
            for file in self._files():
                letters = list(self._read_file(file))
                changed = [change(letter) for letter in letters]
                kept = [letter for letter in changed if letter is not None]
                n_removed += len(letters) - len(kept)
                if kept != letters:
                    self._write_file(file, kept)
        return n_removed

    def _exists(self, file: str) -> bool:
        if self._store is None:
            return Path(self._folder, file).exists()
        return bool(self._store.get_file_info(f"{self._folder}/{file}").is_file)

    def _files(self) -> list[str]:
        if self._store is None:
            return sorted(path.name for path in Path(self._folder).glob("letters-*.parquet"))
        selector = fs.FileSelector(self._folder, allow_not_found=True)
        found = (info.base_name for info in self._store.get_file_info(selector) if info.is_file)
        return sorted(name for name in found if name.startswith("letters-") and name.endswith(".parquet"))

    def _read_file(self, file: str) -> Iterator[Letter]:
        path = f"{self._folder}/{file}"
        try:
            table = pq.read_table(path, filesystem=self._store, schema=_SCHEMA, partitioning=None)
        except FileNotFoundError:  # another process has removed it
            return
        for row in table.to_pylist():
            yield Letter(**row)

    def _write_file(self, file: str, letters: Sequence[Letter]) -> None:
        """Write a file as a whole; one without letters is deleted."""
        if not letters:
            if self._store is None:
                Path(self._folder, file).unlink(missing_ok=True)
            else:
                self._store.delete_file(f"{self._folder}/{file}")
            return
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist([asdict(letter) for letter in letters], _SCHEMA), sink)
        if self._store is None:
            make_directory(self._folder)
            write_whole(Path(self._folder, file), sink.getvalue())
            return
        self._store.create_dir(self._folder, recursive=True)
        with self._store.open_output_stream(f"{self._folder}/{file}") as target:
            target.write(sink.getvalue())

    @contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        try:
            yield
        except VedetteError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(getattr(error, "strerror", None) or error).replace(self._place, str(self))
            raise FileError(f"cannot {what} the dead letters in {self}: {reason}") from None
