"""Output of answers: a CSV, JSON lines or Parquet file, or CSV on standard output.

A file is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import base64
import json
import math
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from vedette.data.columns import decode
from vedette.data.row_sizes import cut_table
from vedette.errors import FileError
from vedette.files.rows import check_readable, format_of
from vedette.settings import settings

_LINES_AT_ONCE = 4096  # of JSON that are converted


class Writer(Protocol):
    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


class AnswerFile:
    """An open output for batches, which all have the schema of the first one."""

    def __init__(self, kind: str, sink: BinaryIO) -> None:
        self.kind = kind  # csv, jsonl or parquet
        self._sink = sink
        self._writer: Writer | None = None

    def write(self, batch: pa.RecordBatch) -> None:
        if self._writer is None:
            self._writer = self._open(batch.schema)
        self._writer.write(batch)

    def write_bytes(self, data: bytes | memoryview) -> None:
        """Write whole lines unchanged."""
        self._sink.write(data)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, schema: pa.Schema) -> Writer:
        if self.kind == "parquet":
            return pq.ParquetWriter(self._sink, schema, compression="zstd")  # type: ignore[no-any-return]
        if self.kind == "jsonl":
            return _JsonLines(self._sink)
        for column in schema:
            if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
                raise FileError(
                    f"column {column.name!r} is {column.type}, which CSV does not support; use -o with .jsonl or "
                    f".parquet"
                )
        return pa_csv.CSVWriter(self._sink, schema, write_options=pa_csv.WriteOptions(quoting_style="needed"))  # type: ignore[no-any-return]


def check_paths(rows: Sequence[Path], queries: Path, out: Path | None) -> None:
    """Raise if a file cannot be read, or if the answer would overwrite it."""
    for path in rows:
        format_of(path)
    for path in (*rows, queries):
        check_readable(path)
        if out is not None and out.exists() and out.samefile(path):
            raise FileError(f"the answer would overwrite the input {path}; name another file after -o")


def can_show_progress(out: Path | None) -> bool:
    """Whether progress may be shown: the answer goes into a file, not to the terminal or into a pipe."""
    return out is not None or stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


@contextmanager
def open_answer(path: Path | None) -> Iterator[AnswerFile]:
    """The output at `path`, or standard output. Raises at once if it cannot be written."""
    if path is None:
        sys.stdout.flush()
        answer = AnswerFile("csv", sys.stdout.buffer)
        yield answer
        answer.close()
        sys.stdout.flush()
        return
    kind = format_of(path)
    draft = _new_draft(path)
    try:
        with draft.open("wb") as sink:
            answer = AnswerFile(kind, sink)
            try:
                yield answer
            finally:
                answer.close()  # also if incomplete: otherwise a Parquet writer closes itself after the sink
        draft.replace(path)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)


def plain_batches(answer: pa.Table) -> Iterator[pa.RecordBatch]:
    """An operator's answer without dictionaries, in batches of bounded size; none if it has no rows."""
    for part in cut_table(answer, settings().answer_batch_bytes):
        yield plain(part)


def plain(answer: pa.Table) -> pa.RecordBatch:
    """An operator's answer without dictionaries: strings, numbers and times."""
    columns = [decode(column.combine_chunks()) for column in answer.columns]
    return pa.RecordBatch.from_arrays(
        [column.cast(plain_type(column.type)) for column in columns], names=answer.column_names
    )


def plain_type(got: pa.DataType) -> pa.DataType:
    """The type of a column in files of answers."""
    kinds = pa.types
    if kinds.is_timestamp(got):
        return pa.timestamp("us", tz="UTC")
    if kinds.is_integer(got):
        return pa.int64()
    return pa.float64() if kinds.is_floating(got) else pa.string()


def _new_draft(path: Path) -> Path:
    """A new, empty file in the folder of `path`, to be renamed to it."""
    if path.is_dir():
        raise FileError(f"cannot write {path}: it is a directory; name a file in it")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        if path.exists():
            with path.open("ab"):  # raises for a file without write permission, which a rename would replace
                pass
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}; choose another file with -o") from None
    os.close(handle)
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(name, 0o666 & ~mask)
    return Path(name)


class _JsonLines:
    """Batches as JSON lines, as Spark writes them: NaN and infinities are strings."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        for start in range(0, batch.num_rows, _LINES_AT_ONCE):  # Python objects need far more memory than Arrow
            rows = batch.slice(start, _LINES_AT_ONCE).to_pylist()
            lines = [json.dumps(_as_json(row), ensure_ascii=False, default=_as_text) + "\n" for row in rows]
            self._sink.write("".join(lines).encode())

    def close(self) -> None:
        pass


def _as_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {name: _as_json(part) for name, part in value.items()}
    return [_as_json(part) for part in value] if isinstance(value, list) else value


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
