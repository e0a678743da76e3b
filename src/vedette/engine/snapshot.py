"""One file for a compiled query set: a JSON header and flat arrays, mapped into memory as they are.

Arrays start at multiples of 64 bytes. The map is copy-on-write: processes on a host share the pages, and none can
change the file. A checksum over all guards the kernels, which trust their arrays. Nothing in the file is executed.
"""

from __future__ import annotations

import dataclasses
import json
import mmap
import os
import uuid
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.axes import NumberAxis, StringAxis, WideAxis
from vedette.columns import string_buffers, strings_over
from vedette.errors import FileError, SnapshotError
from vedette.indexes import INDEXES
from vedette.language import Residual
from vedette.operators.match import EveryRow, Group, Part
from vedette.operators.screen import Screen
from vedette.private_files import create_file

FORMAT = 3
_MAGIC = b"VEDETTE\0"
_ALIGNMENT = 64
_CLASSES: dict[str, Any] = {
    each.__name__: each for each in (NumberAxis, StringAxis, WideAxis, Group, Part, EveryRow, Screen, *INDEXES.values())
}


def write(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Save `content`: dicts, lists, scalars, arrays and the classes of a compiled set.

    The file is there whole or not.
    """
    target = Path(path)
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex}"
    try:
        try:
            with create_file(temporary) as file:
                for piece in _pieces(content):
                    file.write(piece)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise FileError(f"cannot write the query set to {str(target)!r}: {error.strerror or error}") from None


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write` saved, over a copy-on-write map of the file."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise SnapshotError(f"{str(path)!r} is empty; it is not a saved query set")
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError as error:
        raise FileError(f"cannot read the query set {str(path)!r}: {error.strerror or error}") from None
    return _decode_all(memoryview(buffer), repr(str(path)))


def to_bytes(content: dict[str, Any]) -> bytes:
    return b"".join(_pieces(content))


def from_bytes(data: bytes, what: str = "query set") -> dict[str, Any]:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a saved {what} is bytes; got {type(data).__name__}")
    return _decode_all(memoryview(bytearray(data)), "the bytes", what)


def _pieces(content: dict[str, Any]) -> list[bytes | memoryview]:
    arrays: list[NDArray[Any]] = []
    tree = _encode(content, arrays)
    places, end = [], 0
    for array in arrays:
        places.append([array.dtype.str, list(array.shape), end])
        end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    header = json.dumps({"arrays": places, "content": tree}, separators=(",", ":")).encode()
    header += b" " * (-(len(header) + 24) % _ALIGNMENT)
    body: list[bytes | memoryview] = [header]
    for array in arrays:
        body.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        body.append(bytes(-array.nbytes % _ALIGNMENT))
    length = np.array([len(header)], np.uint64).tobytes()
    checksum = 0
    for piece in (length, *body):
        checksum = zlib.crc32(piece, checksum)
    return [_MAGIC + np.array([FORMAT, checksum], np.uint32).tobytes() + length, *body]


def _decode_all(buffer: memoryview, name: str, what: str = "query set") -> dict[str, Any]:
    if bytes(buffer[:8]) != _MAGIC or len(buffer) < 24:
        raise SnapshotError(f"{name} hold no saved {what}" if name == "the bytes" else f"{name} is not a saved {what}")
    format_, checksum = np.frombuffer(buffer[8:16], np.uint32).tolist()
    name = f"the saved {what}" if name == "the bytes" else name
    anew = "save the set again" if what == "query set" else "begin with a new state, in Spark with a new checkpoint"
    if format_ != FORMAT:
        raise SnapshotError(f"{name} has format {format_}; this Vedette reads format {FORMAT}: {anew}")
    if zlib.crc32(buffer[16:]) != checksum:
        raise SnapshotError(f"{name} is damaged: its checksum does not fit; {anew}")
    header_length = int(np.frombuffer(buffer[16:24], np.uint64)[0])
    header = json.loads(bytes(buffer[24 : 24 + header_length]))
    start = 24 + header_length
    arrays = []
    for dtype, shape, offset in header["arrays"]:
        n = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(buffer, dtype, n, start + offset) if n else np.empty(0, dtype)
        arrays.append(array.reshape(shape))
    try:
        return _decode(header["content"], arrays)  # type: ignore[no-any-return]
    except (KeyError, TypeError):
        anew = "save the set again with it" if what == "query set" else anew
        raise SnapshotError(f"{name} holds what this Vedette does not know: {anew}") from None


def _encode(value: Any, arrays: list[NDArray[Any]]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return {"integers": [str(each) for each in value.tolist()]}
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, (pa.StringArray, pa.LargeStringArray)):
        offsets, data = string_buffers(value.cast(pa.large_string()))
        return {"strings": [_encode(offsets - offsets[0], arrays), _encode(data[offsets[0] : offsets[-1]], arrays)]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_encode(each, arrays) for each in value]}
    if isinstance(value, dict):
        return {"dict": [[key, _encode(each, arrays)] for key, each in value.items()]}
    if isinstance(value, Residual):
        return {"residual": _encode(list(value.to_parts()), arrays)}
    if type(value).__name__ in _CLASSES:
        fields = {each.name: _encode(getattr(value, each.name), arrays) for each in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": fields}
    raise TypeError(f"a snapshot cannot hold {type(value).__name__}")


def _decode(tree: Any, arrays: list[NDArray[Any]]) -> Any:
    if not isinstance(tree, dict):
        return tree
    if "class" in tree:
        return _CLASSES[tree["class"]](**{name: _decode(each, arrays) for name, each in tree["fields"].items()})
    ((kind, inner),) = tree.items()
    if kind == "array":
        return arrays[inner]
    if kind == "integers":
        return np.array([None if each == "None" else int(each) for each in inner], dtype=object)
    if kind == "strings":
        offsets, data = (_decode(each, arrays) for each in inner)
        return strings_over(offsets, data, len(offsets) - 1)
    if kind == "dict":
        return {key: _decode(each, arrays) for key, each in inner}
    if kind == "residual":
        return Residual.from_parts(*_decode(inner, arrays))
    return (tuple if kind == "tuple" else list)(_decode(each, arrays) for each in inner)
