"""Saved content as one sequence of bytes: a JSON header, then flat arrays that can be used in place.

Query sets (`queries/snapshot.py`) and monitor states (`operators/state.py`) are such containers, each with its own
first bytes and format number. Arrays start at multiples of 64 bytes. A checksum over everything detects damage, but
not a deliberate change: the reader of a container validates what kernels rely on. Nothing in it is executed.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.columns import check_strings, string_buffers, strings_over
from vedette.errors import SnapshotError, VedetteError
from vedette.native.damage import MOST, DamageError, check

_ALIGNMENT = 64
_START = 24  # bytes before the header: first bytes, format, checksum, length of the header
_DTYPES = {np.dtype(each).str for each in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}
_MAX_DIMENSIONS = 4
_MAX_DIGITS = 39  # of an integer beyond 64 bits, which is an unscaled decimal
# Exceptions of reading damaged content; MemoryError if its sizes are very large.
_UNREADABLE = (
    VedetteError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    ValueError, pa.ArrowException,
)  # fmt: skip


@contextmanager
def refusing_damage(name: str, advice: str) -> Iterator[None]:
    """Raise SnapshotError for every error while saved content is read: it is not trusted."""
    try:
        yield
    except SnapshotError:
        raise
    except DamageError as error:
        raise SnapshotError(f"{name} is damaged: {error}; {advice}") from None
    except _UNREADABLE as error:
        raise SnapshotError(f"{name} is damaged: it cannot be read ({type(error).__name__}); {advice}") from error


class Encoder:
    """Content as a tree for JSON and a list of arrays. Subclasses add the classes that they can save."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return {"integers": [str(each) for each in value.tolist()]}
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if isinstance(value, (pa.StringArray, pa.LargeStringArray)):
            offsets, data = string_buffers(value.cast(pa.large_string()))
            return {"strings": [self.encode(offsets - offsets[0]), self.encode(data[offsets[0] : offsets[-1]])]}
        if isinstance(value, (list, tuple)):
            return {type(value).__name__: [self.encode(each) for each in value]}
        if isinstance(value, dict):
            return {"dict": [[key, self.encode(each)] for key, each in value.items()]}
        return self.encode_object(value)

    def encode_object(self, value: Any) -> Any:
        raise TypeError(f"cannot save {type(value).__name__}")


class Decoder:
    """Content from its tree. Every array has exactly one owner, because an owner may write to it.

    `is_checked`: the content passed all checks before, so strings and booleans are not checked again.
    """

    def __init__(self, *, is_checked: bool = False) -> None:
        self.arrays: list[NDArray[Any] | None] = []
        self._is_checked = is_checked

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            check(not isinstance(tree, list), "its content has an invalid type")
            return tree
        if len(tree) != 1:
            return self.decode_object(tree)
        ((kind, inner),) = tree.items()
        return self._decoders[kind](self, inner) if kind in self._decoders else self.decode_object(tree)

    def decode_object(self, tree: dict[str, Any]) -> Any:
        """The inverse of `Encoder.encode_object`. Raises KeyError if the content is unknown."""
        raise KeyError(next(iter(tree), ""))

    def _array(self, number: int) -> NDArray[Any]:
        check(type(number) is int and 0 <= number < len(self.arrays), "an array is missing")
        array, self.arrays[number] = self.arrays[number], None
        check(array is not None, "an array has two owners")
        assert array is not None
        if array.dtype == np.bool_ and array.size and not self._is_checked:
            check(array.view(np.uint8).max() <= 1, "a boolean is neither true nor false")
        return array

    def _integers(self, texts: list[str]) -> NDArray[Any]:
        numbers = [None if each == "None" else int(each) for each in texts]
        check(all(each is None or abs(each) < 10**_MAX_DIGITS for each in numbers), "an integer has too many digits")
        made = np.empty(len(numbers), object)
        made[:] = numbers
        return made

    def _strings(self, inner: list[Any]) -> pa.LargeStringArray:
        offsets, data = (self.decode(each) for each in inner)
        if not self._is_checked:
            check(isinstance(offsets, np.ndarray) and isinstance(data, np.ndarray), "strings have an invalid type")
            check_strings(offsets, data, len(offsets) - 1)
        return strings_over(offsets, data, len(offsets) - 1)

    def _dict(self, pairs: list[Any]) -> dict[str, Any]:
        made = {key: self.decode(each) for key, each in pairs}
        check(len(made) == len(pairs) and all(isinstance(key, str) for key in made), "its names are invalid")
        return made

    def _list(self, inner: list[Any]) -> list[Any]:
        check(isinstance(inner, list), "its content has an invalid type")
        return [self.decode(each) for each in inner]

    _decoders: ClassVar[dict[str, Callable[[Decoder, Any], Any]]] = {
        "array": _array,
        "integers": _integers,
        "strings": _strings,
        "dict": _dict,
        "list": _list,
        "tuple": lambda self, inner: tuple(self._list(inner)),
    }


@dataclass(frozen=True)
class Container:
    """One kind of container: its first bytes, its format number, and its name and advice in errors."""

    magic: bytes
    format: int
    what: str
    advice: str

    def to_pieces(self, content: dict[str, Any], encoder: Encoder) -> list[bytes | memoryview]:
        """The bytes of the content, in pieces: arrays are not copied."""
        tree = encoder.encode(content)
        places, end = [], 0
        for array in encoder.arrays:
            places.append([array.dtype.str, list(array.shape), end])
            end += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        header = json.dumps({"arrays": places, "content": tree}, separators=(",", ":")).encode()
        header += b" " * (-(len(header) + _START) % _ALIGNMENT)
        body: list[bytes | memoryview] = [header]
        for array in encoder.arrays:
            body.append(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            body.append(bytes(-array.nbytes % _ALIGNMENT))
        length = np.array([len(header)], np.uint64).tobytes()
        checksum = 0
        for piece in (length, *body):
            checksum = zlib.crc32(piece, checksum)
        return [self.magic + np.array([self.format, checksum], np.uint32).tobytes() + length, *body]

    def read(self, buffer: memoryview, decoder: Decoder, name: str = "") -> dict[str, Any]:
        """The content of a buffer, whose memory it uses. `name` is the name of a file; without one, these are bytes."""
        if bytes(buffer[:8]) != self.magic or len(buffer) < _START:
            raise SnapshotError(f"{name or 'the bytes'} {'is' if name else 'are'} not a saved {self.what}")
        name = name or f"the saved {self.what}"
        format_, checksum = np.frombuffer(buffer[8:16], np.uint32).tolist()
        if format_ != self.format:
            raise SnapshotError(f"{name} has format {format_}; this Vedette reads format {self.format}: {self.advice}")
        if zlib.crc32(buffer[16:]) != checksum:
            raise SnapshotError(f"{name} is damaged: its checksum is wrong; {self.advice}")
        with refusing_damage(name, self.advice):
            return self._decode(buffer, decoder, name)

    def _decode(self, buffer: memoryview, decoder: Decoder, name: str) -> dict[str, Any]:
        header_length = int(np.frombuffer(buffer[16:_START], np.uint64)[0])
        check(header_length <= len(buffer) - _START and header_length % 8 == 0, "its header is cut off")
        header = json.loads(bytes(buffer[_START : _START + header_length]))
        check(isinstance(header, dict) and header.keys() == {"arrays", "content"}, "its header is invalid")
        decoder.arrays = [*_read_arrays(buffer[_START + header_length :], header["arrays"])]
        try:
            content = decoder.decode(header["content"])
        except (KeyError, TypeError):
            raise SnapshotError(
                f"{name} has content that is unknown to this version of Vedette: {self.advice}"
            ) from None
        check(isinstance(content, dict), "its content is invalid")
        return content  # type: ignore[no-any-return]


def _read_arrays(body: memoryview, places: Any) -> list[NDArray[Any]]:
    """The arrays. Each must start where the previous one ends, because arrays that are written to must not overlap."""
    arrays, end = [], 0
    for dtype, shape, offset in places:
        check(dtype in _DTYPES, "an array has an invalid type")
        check(isinstance(shape, list) and len(shape) <= _MAX_DIMENSIONS, "an array has an invalid shape")
        check(all(type(n) is int and 0 <= n < MOST for n in shape), "an array has an invalid shape")
        n = math.prod(shape)
        n_bytes = n * np.dtype(dtype).itemsize
        check(type(offset) is int and offset == end and n_bytes <= len(body) - end, "its arrays are not complete")
        array = np.frombuffer(body, dtype, n, offset) if n else np.empty(0, dtype)
        arrays.append(array.reshape(shape))
        end += -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
    check(end == len(body), "its arrays are not complete")
    return arrays
