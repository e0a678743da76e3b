"""A shard as a checkpoint stores it: a head in JSON, and entries in pieces. `state.py` writes the same in a stream."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vedette.errors import SnapshotError
from vedette.operators.state import Content
from vedette.spark.shards.layout import stored_state
from vedette.spark.shards.state import FORMAT, PIECE_BYTES

HEAD = -1  # the entry number of the head


@dataclass(frozen=True)
class StoredShard:
    """The head of a shard, and its pieces by entry and number."""

    label: int
    head: dict[str, Any]
    pieces: Mapping[tuple[int, int], bytes]

    @classmethod
    def read(cls, label: int, pieces: Mapping[tuple[int, int], bytes]) -> StoredShard | None:
        """The shard that these pieces belong to; None if they have no head."""
        if (HEAD, HEAD) not in pieces:
            return None
        return cls(label, read_head(bytes(pieces[HEAD, HEAD])), pieces)

    @property
    def facts(self) -> dict[str, Any]:
        return self.head["facts"]  # type: ignore[no-any-return]

    @property
    def n_bytes(self) -> int:
        return sum(entry[2] for entry in (*self.head["entries"], *self.head.get("earlier", ())))

    @property
    def n_entries(self) -> int:
        return len(self.head["entries"])

    def content(self) -> Content:
        """The whole state, from its base and deltas."""
        return stored_state(self.facts).read(self._blobs())

    def _blobs(self) -> list[bytes]:
        first, blobs = self.head["first"], []
        for number, (_, n_pieces, n_bytes) in enumerate(self.head["entries"]):
            blob = b"".join(self.pieces.get((first + number, piece), b"") for piece in range(n_pieces))
            if len(blob) != n_bytes:
                raise SnapshotError(f"a part of the state of shard {self.label} is missing")
            blobs.append(blob)
        return blobs


def read_head(text: bytes | str) -> dict[str, Any]:
    """The head of a shard. Raises SnapshotError if this version cannot read it."""
    try:
        head: dict[str, Any] = json.loads(text)
        found = head["facts"]["format"]
    except (ValueError, LookupError, TypeError):
        raise SnapshotError("the state was not written by vedette, or is damaged") from None
    if found != FORMAT:
        raise SnapshotError(
            f"the checkpoint's state has format {found} but this version of vedette reads format {FORMAT}; use the "
            f"version that wrote it"
        )
    return head


def write_shard(blob: bytes, facts: dict[str, Any], kind: str, version: int | None) -> dict[tuple[int, int], bytes]:
    """The head and the pieces of a shard whose state is one base. `version` is that of a followed set."""
    cuts = range(0, max(1, len(blob)), PIECE_BYTES)
    entry = [uuid.uuid4().hex[:16], len(cuts), len(blob)]
    head: dict[str, Any] = {"facts": facts, "kind": kind, "first": 0, "entries": [entry]}
    if version is not None:
        head["versions"] = [version, version]
    written = {(0, piece): blob[start : start + PIECE_BYTES] for piece, start in enumerate(cuts)}
    return written | {(HEAD, HEAD): json.dumps(head, separators=(",", ":")).encode()}
