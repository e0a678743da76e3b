"""The changes of a set between two versions as a file that the workers of a host map.

One process of a host reads changes from the database, compiles the texts of added queries and writes the file; the
others wait for it. It has the format of saved sets (`queries/snapshot.py`): it is written as a whole or not at all, it
is validated by every reader because it is small, and nothing in it is executed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vedette.data.container import refusing_damage
from vedette.errors import QueryError, SnapshotError
from vedette.language import CompiledTexts, compile_texts
from vedette.native.damage import check
from vedette.queries import snapshot
from vedette.queries.match import Part
from vedette.queries.parts import decompile, join_alike, validate_parts
from vedette.queries.planner import compile_part
from vedette.queries.set_changes import Changes
from vedette.registry.kinds import KINDS
from vedette.registry.read.set_info import SetInfo

_KIND = "changes"
_NUMBERS = ("versions", "marks", "removed_versions", "added_versions")
_ADVICE = "delete it; it is written again"


def write_changes(changes: Changes, path: Path, info: SetInfo, *, is_compiled: bool = True) -> None:
    """Write changes to a file. Texts over one schema are compiled, if `is_compiled`. Raises FileError."""
    content: dict[str, Any] = {name: getattr(changes, name) for name in _NUMBERS}
    content |= {name: _to_column(getattr(changes, name)) for name in ("removed_ids", "added_ids")}
    content["texts"] = None if changes.texts is None else pa.array(changes.texts, pa.large_string())
    content["options"], content["metadata"] = _to_texts(changes.options), _to_texts(changes.metadata)
    content["windows"] = None if changes.windows is None else json.dumps(changes.windows)
    content |= {"lows": changes.lows, "highs": changes.highs, "sides": changes.sides}
    content["part"] = _compile(changes, info) if is_compiled else None
    snapshot.write(content | {"kind": _KIND}, path)


def read_changes_file(path: Path, since: int, until: int, info: SetInfo) -> Changes:
    """The changes of a file, which must be those after `since` up to `until`.

    Raises FileError if it cannot be read, SnapshotError if it is damaged.
    """
    saved = snapshot.read(path)
    if snapshot.kind_of(saved.content) != _KIND:
        raise SnapshotError(f"{saved.name} has no changes of a set; {_ADVICE}")
    with refusing_damage(saved.name, _ADVICE):
        changes = _to_changes(saved.content)
        check(changes.versions.tolist() == [*range(since + 1, until + 1)], "it has other versions")
        part = saved.content["part"]
        if part is not None:
            changes = replace(changes, compiled=_decompile(part, changes, info))
    return changes


def _compile(changes: Changes, info: SetInfo) -> Part | None:
    """The added queries as one part; None if the kind of set compiles otherwise."""
    if KINDS[info.kind].schemas != "one" or not changes.texts:
        return None
    schema = info.read_schema()
    assert schema is not None
    try:
        compiled = compile_texts(changes.texts, schema, info.time_zone, ids=changes.added_ids)
    except QueryError:
        return None  # each worker reports it
    return compile_part(join_alike(compiled.blocks), compiled.residuals, schema, 0, changes.n_added, None)


def _decompile(part: Any, changes: Changes, info: SetInfo) -> CompiledTexts:
    schema = info.read_schema()
    check(isinstance(part, Part) and schema is not None, "its compiled queries have an invalid type")
    assert schema is not None
    validate_parts([part], schema, changes.n_added)
    blocks, residuals = decompile(part.restored(), np.zeros(changes.n_added, np.bool_))
    return CompiledTexts(changes.n_added, blocks, residuals)


def _to_changes(content: dict[str, Any]) -> Changes:
    for name in _NUMBERS:
        is_numbers = isinstance(content[name], np.ndarray) and content[name].dtype == np.int64
        check(is_numbers and content[name].ndim == 1, f"{name} are not integers")
    texts, windows = content["texts"], content["windows"]
    changes = Changes(
        content["versions"],
        content["marks"],
        _to_ids(content["removed_ids"]),
        content["removed_versions"],
        _to_ids(content["added_ids"]),
        content["added_versions"],
        None if texts is None else texts.to_pylist(),
        None if windows is None else json.loads(windows),
        content["lows"],
        content["highs"],
        content["sides"],
        None,
        _from_texts(content["options"]),
        _from_texts(content["metadata"]),
    )
    check(len(changes.marks) == len(changes), "versions have no marks")
    check(len(changes.removed_ids) == len(changes.removed_versions), "removed queries have no versions")
    columns: list[Any] = [changes.added_versions, changes.texts, changes.windows, changes.lows, changes.highs]
    columns += [changes.options, changes.metadata]
    columns += (changes.sides or {}).values()
    check(all(len(each) == changes.n_added for each in columns if each is not None), "its columns differ in length")
    return changes


def _to_texts(texts: Sequence[str | None] | None) -> pa.LargeStringArray | None:
    return None if texts is None else pa.array([each or "" for each in texts], pa.large_string())


def _from_texts(column: Any) -> list[str | None] | None:
    return None if column is None else [each or None for each in column.to_pylist()]


def _to_column(ids: Sequence[Any]) -> NDArray[np.int64] | pa.LargeStringArray:
    return np.array(ids, np.int64) if ids and isinstance(ids[0], int) else pa.array(ids, pa.large_string())


def _to_ids(column: Any) -> list[Any]:
    ids: list[Any] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return ids
