"""Raw records of a text file: lines of JSON, or records of CSV, whose quoted fields may contain newlines.

A file is read in blocks of whole records. The columns that queries need are parsed from a block. The records are kept
as bytes, so that they can be copied unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import writable
from vedette.errors import FileError
from vedette.native.kernels import kernel

BLOCK_BYTES = 8 << 20
_MAX_BYTES = 256 << 20  # of one record
_BOM = b"\xef\xbb\xbf"
_QUOTE, _COMMA, _NEWLINE, _RETURN, _SPACE = 34, 44, 10, 13, 32


@dataclass(frozen=True)
class Records:
    """Whole records of a file. `lines` includes their line ends and the empty lines after them."""

    data: pa.Buffer
    offsets: NDArray[np.int64]  # one more than records
    n_bytes_read: int  # of the file so far

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lines(self) -> pa.LargeBinaryArray:
        return pa.Array.from_buffers(pa.large_binary(), len(self), [None, pa.py_buffer(self.offsets), self.data])

    @property
    def whole(self) -> pa.Buffer:
        """The bytes of all records."""
        return self.data.slice(int(self.offsets[0]), int(self.offsets[-1] - self.offsets[0]))

    @property
    def longest(self) -> int:
        """The bytes of the longest record."""
        return int(np.diff(self.offsets).max(initial=0))

    def after(self, n: int) -> Records:
        """The records after the first `n`."""
        return Records(self.data, self.offsets[n:], self.n_bytes_read)

    def first(self, n: int) -> Records:
        return Records(self.data, self.offsets[: n + 1], self.n_bytes_read)


def read_records(path: Path, is_csv: bool) -> Iterator[Records]:
    """The records of a file, one block at a time. Each block has at least one record."""
    with path.open("rb") as file:
        rest, n_read, n_records = file.read(len(_BOM)).removeprefix(_BOM), 0, 0
        while True:
            n_wanted = max(BLOCK_BYTES, len(rest))
            block = file.read(n_wanted)
            is_last = len(block) < n_wanted
            data = rest + block
            offsets, end = _cut(data, is_csv, is_last)
            is_open = is_last and end < len(data)
            if is_open or len(data) - end > _MAX_BYTES:
                n_rows = max(0, n_records + len(offsets) - 1 - is_csv)
                what = "a quote is not closed" if is_open else f"a record is longer than {_MAX_BYTES >> 20} MB"
                raise FileError(f"cannot read {path} after row {n_rows:,}: {what}")
            n_read = file.tell() - (len(data) - end)
            if len(offsets) > 1:
                n_records += len(offsets) - 1
                yield Records(pa.py_buffer(data), offsets, n_read)
            if is_last:
                return
            rest = data[end:]


def _cut(data: bytes, is_csv: bool, is_last: bool) -> tuple[NDArray[np.int64], int]:
    """The offsets of whole records and the end of the last one, and how many bytes they take."""
    array: NDArray[Any] = writable(np.frombuffer(data, np.uint8))
    offsets = np.empty(data.count(b"\n") + (data.count(b"\r") if is_csv else 0) + 2, np.int64)
    n, end = _find_records(array, is_csv, is_last, offsets)
    offsets[n] = end
    return offsets[: n + 1].copy(), int(end)


@kernel
def _find_records(data: NDArray[np.uint8], is_csv: bool, is_last: bool, starts: NDArray[np.int64]) -> tuple[int, int]:
    """Fill `starts` with the offsets of records. Returns how many there are, and where the last whole record ends.

    At the end of a file this is the end of the data, unless a quote is not closed.
    A quote opens a quoted field only at the start of the field, as in Arrow's parser.
    """
    n = 0
    start = end = 0
    in_quotes = False
    is_field_start = True
    is_blank = True
    i = 0
    while i < len(data):
        byte = data[i]
        i += 1
        if is_csv and in_quotes:
            if byte == _QUOTE:
                if i < len(data) and data[i] == _QUOTE:
                    i += 1
                else:
                    in_quotes = False
            continue
        if is_csv and byte == _RETURN:
            if i == len(data) and not is_last:  # a newline may follow
                break
            if i < len(data) and data[i] == _NEWLINE:
                i += 1
        elif byte != _NEWLINE:
            if is_csv and byte == _QUOTE and is_field_start:
                in_quotes = True
            is_field_start = byte == _COMMA
            if is_csv or byte > _SPACE:
                is_blank = False
            continue
        if not is_blank:
            starts[n] = start
            n += 1
        start = end = i
        is_field_start = is_blank = True
    if is_last and not in_quotes:
        if start < len(data) and not is_blank:
            starts[n] = start
            n += 1
        end = len(data)
    return n, end
