"""One file for a compiled query set: a container (`data/container.py`) that is mapped into memory.

The map is copy-on-write: processes on a host share the pages, and none can change the file. A checksum does not protect
against a deliberate change, and kernels do not check their arrays. So everything that they rely on is also validated:
once per host and file, because it takes as long as the checksum.
"""

from __future__ import annotations

import dataclasses
import mmap
import os
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from vedette.data.axes import NumberAxis, StringAxis, WideAxis
from vedette.data.container import Container, Decoder, Encoder
from vedette.data.key_axes import KeyAxis
from vedette.data.list_axes import ElementAxis
from vedette.data.substring_axes import SubstringAxis
from vedette.errors import FileError, SnapshotError
from vedette.host_files.checked_files import is_checked, note_checked
from vedette.host_files.private_files import create_file
from vedette.indexes.index import KeptAsBoxes
from vedette.indexes.names import INDEXES, SAVED_INDEXES, name_of
from vedette.language import Residual
from vedette.native.damage import check
from vedette.queries.match import EveryRow, Group, Part
from vedette.queries.screen import Screen

FORMAT = 4
_MAGIC = b"VEDETTE\0"
_CLASSES: dict[str, Any] = {
    each.__name__: each
    for each in (
        *(NumberAxis, StringAxis, WideAxis, ElementAxis, SubstringAxis, KeyAxis),
        *(Group, Part, EveryRow, Screen, KeptAsBoxes),
        *(INDEXES[name] for name in SAVED_INDEXES),
    )
}
_CHECK = f"snapshot format {FORMAT}, checks 1"  # increase the number when checks are added


def write(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Save `content`: dicts, lists, scalars, arrays and the classes of a compiled set.

    The file is written as a whole or not at all.
    """
    target = Path(path)
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex}"
    try:
        try:
            with create_file(temporary) as file:
                for piece in _container().to_pieces(content, _SetEncoder()):
                    file.write(piece)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise FileError(f"cannot write the query set to {str(target)!r}: {error.strerror or error}") from None


@dataclass(frozen=True)
class Saved:
    """The content of a file. `is_checked`: the file in its current state has passed all checks on this host."""

    content: dict[str, Any]
    name: str
    state: os.stat_result
    is_checked: bool

    def note_checked(self) -> None:
        """Record that the content has passed all checks."""
        if not self.is_checked:
            note_checked(self.state, _CHECK)


def read(path: str | os.PathLike[str]) -> Saved:
    """The content that `write` saved, in a copy-on-write map of the file."""
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
    content = _container().read(memoryview(buffer), _SetDecoder(is_checked=known), name)
    return Saved(content, name, state, known)


def to_bytes(content: dict[str, Any]) -> bytes:
    return b"".join(_container().to_pieces(content, _SetEncoder()))


def from_bytes(data: bytes) -> dict[str, Any]:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotError(f"a saved query set must be bytes; got {type(data).__name__}")
    return _container().read(memoryview(bytearray(data)), _SetDecoder())


def _container() -> Container:
    return Container(_MAGIC, FORMAT, "query set", "save the set again")


def kind_of(content: dict[str, Any]) -> str:
    """The kind of set or state of the content."""
    kind = content.get("kind", "queries")
    return kind if isinstance(kind, str) else f"an unknown kind ({type(kind).__name__})"


class _SetEncoder(Encoder):
    """Adds the classes of a compiled set."""

    def encode_object(self, value: Any) -> Any:
        if isinstance(value, Group) and not isinstance(value.index, EveryRow) and not hasattr(value.index, "validate"):
            value = dataclasses.replace(value, index=cast(Any, KeptAsBoxes(name_of(value.index) or "")))
        if isinstance(value, Residual):
            return {"residual": self.encode(list(value.to_parts()))}
        if type(value).__name__ in _CLASSES:
            fields = {each.name: self.encode(getattr(value, each.name)) for each in dataclasses.fields(value)}
            return {"class": type(value).__name__, "fields": fields}
        raise TypeError(f"a snapshot cannot contain {type(value).__name__}")


class _SetDecoder(Decoder):
    """Adds the classes of a compiled set."""

    def decode_object(self, tree: dict[str, Any]) -> Any:
        if tree.keys() == {"residual"}:
            return Residual.from_parts(*self.decode(tree["residual"]))
        check(tree.keys() == {"class", "fields"}, "its content has an invalid type")
        fields = {name: self.decode(each) for name, each in tree["fields"].items()}
        return _CLASSES[tree["class"]](**fields)
