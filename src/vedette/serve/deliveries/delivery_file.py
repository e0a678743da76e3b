"""The files of deliveries in the state directory: the options of each, and the last event that is settled."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vedette.host_files.private_files import make_directory
from vedette.serve.row_log import write_durably


@dataclass(frozen=True)
class DeliveryFile:
    """The file of one delivery. It is replaced as a whole, so it always has options that fit its position."""

    path: Path

    @classmethod
    def of(cls, state: Path, uid: str, name: str) -> DeliveryFile:
        digest = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()  # names of files are short, and of no case
        return cls(_folder(state, uid) / f"{digest}.json")

    @classmethod
    def find_all(cls, state: Path, uid: str) -> list[DeliveryFile]:
        """The files of a set."""
        return [cls(path) for path in sorted(_folder(state, uid).glob("*.json"))]

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def read(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.path.read_bytes())
        return content

    def write(self, name: str, options: dict[str, Any], position: int) -> None:
        make_directory(self.path.parent)
        write_durably(self.path, [json.dumps({"name": name, "options": options, "position": position}).encode()])

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)


def forget_deliveries(state: Path, uid: str) -> None:
    """Delete the files of a set that was dropped."""
    shutil.rmtree(_folder(state, uid), ignore_errors=True)


def _folder(state: Path, uid: str) -> Path:
    return state / f"{uid}.deliveries"
