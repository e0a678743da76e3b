"""One file for a compiled query set: a JSON header and flat arrays, mapped into memory as they are.

Arrays start at multiples of 64 bytes. The map is copy-on-write: processes on a host share the pages, and none can
change the file. A checksum over all tells damage. Whoever changes a file can make the checksum fit, and kernels trust
their arrays, so all that they trust is validated besides: once per host and file, as it takes as long as the checksum.
Nothing in the file is executed.
"""

from __future__ import annotations

import dataclasses
import json
import math
import mmap
import os
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.axes import NumberAxis, StringAxis, WideAxis
from vedette.data.columns import check_strings, string_buffers, strings_over
from vedette.errors import FileError, SnapshotError, VedetteError
from vedette.host_files.checked_files import is_checked, note_checked
from vedette.host_files.private_files import create_file
from vedette.indexes.index import KeptAsBoxes
from vedette.indexes.names import INDEXES, SAVED_INDEXES, name_of
from vedette.language import Residual
from vedette.native.damage import MOST, DamageError, check
from vedette.queries.match import EveryRow, Group, Part
from vedette.queries.screen import Screen

FORMAT = 3
_MAGIC = b"VEDETTE\0"
_ALIGNMENT = 64
_CLASSES: dict[str, Any] = {
    each.__name__: each
    for each in (
        *(NumberAxis, StringAxis, WideAxis, Group, Part, EveryRow, Screen, KeptAsBoxes),
        *(INDEXES[name] for name in SAVED_INDEXES),
    )
}
_DTYPES = {np.dtype(each).str for each in ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}
_MOST_DIMENSIONS = 4
_MOST_DIGITS = 39  # of an integer beyond 64 bits: it is an unscaled decimal
_CHECK = f"snapshot format {FORMAT}, checks 1"  # the number goes up when there are further checks
# What reading content raises where it is not as it was written; MemoryError where it is said to be very large.
_UNREADABLE = (
    VedetteError, ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    ValueError, pa.ArrowException,
)  # fmt: skip


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


@dataclass(frozen=True)
class Saved:
    """What a file holds. `is_checked`: it has passed all checks on this host, in the state in which it is."""

    content: dict[str, Any]
    name: str
    state: os.stat_result
    is_checked: bool

    def note_checked(self) -> None:
        """The content has passed all checks."""
        if not self.is_checked:
            note_checked(self.state, _CHECK)


def read(path: str | os.PathLike[str]) -> Saved:
    """What `write` saved, over a copy-on-write map of the file."""
    try:
        with open(path, "rb") as file:
            state = os.fstat(file.fileno())
            if state.st_size == 0:
                raise SnapshotError(f"{str(path)!r} is empty; it is not a saved query set")
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:
        if isinstance(error, SnapshotError):
            raise
        said = getattr(error, "strerror", None) or error
        raise FileError(f"cannot read the query set {str(path)!r}: {said}") from None
    name, known = repr(str(path)), is_checked(state, _CHECK)
    return Saved(_decode_all(memoryview(buffer), name, is_checked=known), name, state, known)


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


@contextmanager
def refusing_damage(name: str, anew: str) -> Iterator[None]:
    """Whatever goes wrong while content is read, as SnapshotError: a file may hold anything."""
    try:
        yield
    except SnapshotError:
        raise
    except DamageError as error:
        raise SnapshotError(f"{name} is damaged: {error}; {anew}") from None
    except _UNREADABLE as error:
        raise SnapshotError(f"{name} is damaged: it cannot be read ({type(error).__name__}); {anew}") from error


def _decode_all(buffer: memoryview, name: str, what: str = "query set", *, is_checked: bool = False) -> dict[str, Any]:
    if bytes(buffer[:8]) != _MAGIC or len(buffer) < 24:
        raise SnapshotError(f"{name} hold no saved {what}" if name == "the bytes" else f"{name} is not a saved {what}")
    format_, checksum = np.frombuffer(buffer[8:16], np.uint32).tolist()
    name = f"the saved {what}" if name == "the bytes" else name
    anew = start_anew(what)
    if format_ != FORMAT:
        raise SnapshotError(f"{name} has format {format_}; this Vedette reads format {FORMAT}: {anew}")
    if zlib.crc32(buffer[16:]) != checksum:
        raise SnapshotError(f"{name} is damaged: its checksum does not fit; {anew}")
    with refusing_damage(name, anew):
        header_length = int(np.frombuffer(buffer[16:24], np.uint64)[0])
        check(header_length <= len(buffer) - 24 and header_length % 8 == 0, "its header is cut")
        header = json.loads(bytes(buffer[24 : 24 + header_length]))
        check(isinstance(header, dict) and header.keys() == {"arrays", "content"}, "its header is none")
        arrays = _read_arrays(buffer[24 + header_length :], header["arrays"])
        try:
            content = _Decoder(arrays, is_checked=is_checked).decode(header["content"])
        except (KeyError, TypeError):
            anew = "save the set again with it" if what == "query set" else anew
            raise SnapshotError(f"{name} holds what this Vedette does not know: {anew}") from None
        check(isinstance(content, dict), "its content is none")
        return content  # type: ignore[no-any-return]


def kind_of(content: dict[str, Any]) -> str:
    """Of what set or state something is the content."""
    kind = content.get("kind", "queries")
    return kind if isinstance(kind, str) else f"of no kind ({type(kind).__name__})"


def start_anew(what: str) -> str:
    """What to do where something that was saved cannot be used."""
    return "save the set again" if what == "query set" else "begin with a new state, in Spark with a new checkpoint"


def _read_arrays(body: memoryview, places: Any) -> list[NDArray[Any]]:
    """The arrays, which follow each other as they were written: none overlaps another, which may be written to."""
    arrays, end = [], 0
    for dtype, shape, offset in places:
        check(dtype in _DTYPES and isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS, "an array is of no type")
        check(all(type(n) is int and 0 <= n < MOST for n in shape), "an array has no such shape")
        n = math.prod(shape)
        n_bytes = n * np.dtype(dtype).itemsize
        check(type(offset) is int and offset == end and n_bytes <= len(body) - end, "its arrays are not whole")
        array = np.frombuffer(body, dtype, n, offset) if n else np.empty(0, dtype)
        arrays.append(array.reshape(shape))
        end += -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
    check(end == len(body), "its arrays are not whole")
    return arrays


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
    if isinstance(value, Group) and not isinstance(value.index, EveryRow) and not hasattr(value.index, "validate"):
        value = dataclasses.replace(value, index=cast(Any, KeptAsBoxes(name_of(value.index) or "")))
    if isinstance(value, Residual):
        return {"residual": _encode(list(value.to_parts()), arrays)}
    if type(value).__name__ in _CLASSES:
        fields = {each.name: _encode(getattr(value, each.name), arrays) for each in dataclasses.fields(value)}
        return {"class": type(value).__name__, "fields": fields}
    raise TypeError(f"a snapshot cannot hold {type(value).__name__}")


class _Decoder:
    """Content from its tree. Every array has one owner, as who owns one may write to it."""

    def __init__(self, arrays: list[NDArray[Any]], *, is_checked: bool) -> None:
        self._arrays: list[NDArray[Any] | None] = [*arrays]
        self._is_checked = is_checked

    def decode(self, tree: Any) -> Any:
        if not isinstance(tree, dict):
            check(not isinstance(tree, list), "its content is of no kind")
            return tree
        if "class" in tree:
            fields = {name: self.decode(each) for name, each in tree["fields"].items()}
            return _CLASSES[tree["class"]](**fields)
        check(len(tree) == 1, "its content is of no kind")
        ((kind, inner),) = tree.items()
        return self._decoders[kind](self, inner)

    def _array(self, number: int) -> NDArray[Any]:
        check(type(number) is int and 0 <= number < len(self._arrays), "an array is missing")
        array, self._arrays[number] = self._arrays[number], None
        check(array is not None, "an array has two owners")
        assert array is not None
        if array.dtype == np.bool_ and array.size and not self._is_checked:
            check(array.view(np.uint8).max() <= 1, "a truth value is neither true nor false")
        return array

    def _integers(self, texts: list[str]) -> NDArray[Any]:
        numbers = [None if each == "None" else int(each) for each in texts]
        check(all(each is None or abs(each) < 10**_MOST_DIGITS for each in numbers), "an integer has too many digits")
        made = np.empty(len(numbers), object)
        made[:] = numbers
        return made

    def _strings(self, inner: list[Any]) -> pa.LargeStringArray:
        offsets, data = (self.decode(each) for each in inner)
        if not self._is_checked:
            check(isinstance(offsets, np.ndarray) and isinstance(data, np.ndarray), "strings are of no type")
            check_strings(offsets, data, len(offsets) - 1)
        return strings_over(offsets, data, len(offsets) - 1)

    def _dict(self, pairs: list[Any]) -> dict[str, Any]:
        made = {key: self.decode(each) for key, each in pairs}
        check(len(made) == len(pairs) and all(isinstance(key, str) for key in made), "its names are none")
        return made

    def _residual(self, inner: Any) -> Residual:
        return Residual.from_parts(*self.decode(inner))

    def _list(self, inner: list[Any]) -> list[Any]:
        check(isinstance(inner, list), "its content is of no kind")
        return [self.decode(each) for each in inner]

    _decoders: ClassVar[dict[str, Callable[[_Decoder, Any], Any]]] = {
        "array": _array,
        "integers": _integers,
        "strings": _strings,
        "dict": _dict,
        "residual": _residual,
        "list": _list,
        "tuple": lambda self, inner: tuple(self._list(inner)),
    }
