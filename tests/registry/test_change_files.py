"""Changes as files: what is read is what was written, compiled or not, and damage is refused."""

from __future__ import annotations

import numpy as np
import pytest

import vedette as vd
from vedette.errors import FileError, SnapshotError
from vedette.queries.set_changes import Changes
from vedette.registry.snapshots.change_files import read_changes_file, write_changes

SIDE = "id bigint, x double, name string"
SETS = {
    "match": ({"schema": SIDE}, lambda n: {"text": f"x > {n} AND (name = 'a{n}' OR x + {n} < id)"}),
    "border": ({"schema": SIDE}, lambda n: {"text": f"name LIKE 'é{n}%'"}),
    "window join": ({"left": SIDE, "right": SIDE}, lambda n: {"text": f"left.x < right.x + {n}", "within": "1 hour"}),
    "band join": ({}, lambda n: {"low": -n, "high": n}),
    "moving join": ({}, lambda n: {"x_low": n, "x_high": n + 1, "y_low": 0, "y_high": 1}),
}


@pytest.fixture
def registry(tmp_path):
    made = vd.Registry(f"sqlite:///{tmp_path / 'queries.db'}")
    yield made
    made.close()


def fill(registry, kind, ids="string"):
    """A set at version 6: added, replaced and removed queries, and one version without a change."""
    schema, query = SETS[kind]
    registry.create("set", kind=kind, ids=ids, **schema)
    name = (lambda n: n) if ids == "integer" else (lambda n: f"q{n}")
    for n in range(3):
        registry.add("set", name(n), **query(n))
    registry.replace("set", name(1), **query(7))
    registry.remove("set", name(0))
    registry.add("set", name(0), **query(8))
    return registry.set("set")


def as_lists(changes):
    """Changes as plain values."""
    names = [name for name in Changes.__dataclass_fields__ if name not in ("compiled", "sides")]
    sides = None if changes.sides is None else {name: ends.tolist() for name, ends in changes.sides.items()}
    return {name: np.array(getattr(changes, name)).tolist() for name in names} | {"sides": sides}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("ids", ["string", "integer"])
def test_changes_are_read_as_they_were_written(registry, tmp_path, kind, ids):
    info = fill(registry, kind, ids)
    for since, until in [(0, 6), (2, 5), (4, 5)]:
        changes, path = registry.changes("set", since, until), tmp_path / "changes"
        for is_compiled in (True, False):
            write_changes(changes, path, info, is_compiled=is_compiled)
            read = read_changes_file(path, since, until, info)

            assert as_lists(read) == as_lists(changes)
            has_texts = kind in ("match", "border") and changes.n_added > 0
            assert (read.compiled is not None) == (is_compiled and has_texts)


@pytest.mark.parametrize("kind", SETS)
def test_parts_of_changes_join_to_the_whole(registry, kind):
    fill(registry, kind)
    whole = registry.changes("set", 0, 6)
    for cut in range(1, 6):
        parts = [whole.between(0, cut), whole.between(cut, 6)]

        assert as_lists(parts[0]) == as_lists(registry.changes("set", 0, cut))
        assert as_lists(Changes.concat(parts)) == as_lists(whole)


@pytest.mark.parametrize("kind", ["match", "border"])
def test_compiled_changes_match_as_their_texts_do(registry, tmp_path, kind):
    info = fill(registry, kind)
    changes, path = registry.changes("set", 2, 6), tmp_path / "changes"
    write_changes(changes, path, info)
    plain, mapped = (registry.follow("set").open(2) for _ in range(2))
    plain.apply(changes)
    mapped.apply(read_changes_file(path, 2, 6, info))
    rows = [{"id": id_, "x": x, "name": name} for id_ in (1, 99) for x in (0.5, 8.5) for name in ("a7", "é8b", None)]

    assert plain.version == mapped.version == 6
    for row in rows:
        assert sorted(mapped.match_one(row)) == sorted(plain.match_one(row))
    assert any(plain.match_one(row) for row in rows)


def test_a_damaged_file_and_one_of_other_versions_are_refused(registry, tmp_path):
    info = fill(registry, "match")
    path = tmp_path / "changes"
    write_changes(registry.changes("set", 2, 6), path, info)
    content = path.read_bytes()
    with pytest.raises(SnapshotError, match="is damaged: it has other versions; delete it"):
        read_changes_file(path, 2, 5, info)
    for place in (20, 100, len(content) - 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(SnapshotError):
            read_changes_file(path, 2, 6, info)
    registry.follow("set").open(6).save(path)
    with pytest.raises(SnapshotError, match="has no changes of a set"):
        read_changes_file(path, 2, 6, info)
    path.unlink()
    with pytest.raises(FileError, match="cannot read"):
        read_changes_file(path, 2, 6, info)
