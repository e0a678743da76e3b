"""Arrow streams in the bodies of requests, and in answers. Nothing in them is trusted."""

from __future__ import annotations

import struct

import pyarrow as pa

from vedette.errors import RowError
from vedette.serve.problems import Problem

_RECORD_BATCH, _DICTIONARY = 3, 2  # types of a message's header
_MOST_COLUMNS = 10_000


def read_stream(body: bytes, max_rows: int) -> pa.Table:
    """The rows of a stream, validated. Compressed buffers are refused: a small body could become any size."""
    try:
        for message in pa.ipc.MessageReader.open_stream(body):
            _check_message(message.metadata.to_pybytes())
        with pa.ipc.open_stream(body) as reader:
            if len(reader.schema) > _MOST_COLUMNS:
                raise RowError(f"the Arrow stream has {len(reader.schema):,} columns; at most {_MOST_COLUMNS:,} fit")
            _ = [(each.name, getattr(each.type, "tz", None)) for each in reader.schema]  # raises if it is not UTF-8
            batches, n_rows = [], 0
            for batch in reader:
                n_rows += batch.num_rows
                if n_rows > max_rows:
                    raise Problem(
                        413, "too_many_rows", f"the request has more than {max_rows:,} rows, the limit (--max-rows)"
                    )
                batch.validate(full=True)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError, MemoryError) as error:
        if isinstance(error, RowError):
            raise
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RowError(f"the body is not a valid Arrow stream: {said[:200]}") from None
    return table


def write_stream(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _check_message(data: bytes) -> None:
    """Raise RowError if the buffers of a message are compressed. `data` is a flatbuffer, as Arrow's format defines."""
    (root,) = struct.unpack_from("<I", data, 0)
    kind_at = _field(data, root, 1)
    header_at = _field(data, root, 2)
    if kind_at is None or header_at is None:
        return
    kind = data[kind_at]
    header = header_at + struct.unpack_from("<I", data, header_at)[0]
    if kind == _DICTIONARY:
        batch_at = _field(data, header, 1)
        if batch_at is None:
            return
        header = batch_at + struct.unpack_from("<I", data, batch_at)[0]
    elif kind != _RECORD_BATCH:
        return
    if _field(data, header, 3) is not None:
        raise RowError("the Arrow stream is compressed; send it without compression")


def _field(data: bytes, table: int, number: int) -> int | None:
    """The place of a field of a flatbuffer's table; None if the table does not have it."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0:
        raise ValueError("the metadata of a message is damaged")
    (size,) = struct.unpack_from("<H", data, vtable)
    slot = 4 + 2 * number
    if slot + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", data, vtable + slot)
    return table + offset if offset else None
