from __future__ import annotations

import os
import stat

import numpy as np
import pytest

import vedette as vd
from vedette import private_files
from vedette.engine import snapshot


@pytest.fixture
def file(tmp_path):
    queries = vd.QuerySet("x double")
    queries.add_boxes(np.arange(5000), {"x": (np.arange(5000.0), np.arange(5000.0) + 3)})
    path = tmp_path / "queries.vedette"
    queries.save(path)
    return path


def test_a_file_that_is_none_of_ours_is_refused(tmp_path):
    other = tmp_path / "other"
    other.write_bytes(b"something else, and long enough to look at")
    empty = tmp_path / "empty"
    empty.touch()

    with pytest.raises(vd.SnapshotError, match="is not a saved query set"):
        vd.QuerySet.load(other)
    with pytest.raises(vd.SnapshotError, match="is empty; it is not a saved query set"):
        vd.QuerySet.load(empty)
    with pytest.raises(vd.FileError, match=r"cannot read the query set .*: No such file"):
        vd.QuerySet.load(tmp_path / "none")


@pytest.mark.parametrize("harm", ["cut", "changed", "length changed"])
def test_a_damaged_file_is_refused(file, harm):
    data = bytearray(file.read_bytes())
    if harm == "cut":
        data = data[: len(data) // 2]
    else:
        data[16 if harm == "length changed" else len(data) // 2] ^= 1
    file.write_bytes(data)

    with pytest.raises(vd.SnapshotError, match="is damaged: its checksum does not fit; save the set again"):
        vd.QuerySet.load(file)


def test_a_file_of_another_format_is_refused(file):
    data = bytearray(file.read_bytes())
    data[8] = 99
    file.write_bytes(data)

    with pytest.raises(vd.SnapshotError, match="has format 99; this Vedette reads format 3: save the set again"):
        vd.QuerySet.load(file)


def test_bytes_of_another_format_say_what_to_do_anew():
    bands = vd.BandQuerySet()
    moving = vd.MovingJoin(60)
    pairs = vd.JoinQuerySet(left="x double", right="x double")
    keyed = vd.QuerySet("k string, x double, t bigint").border(key="k", time="t")
    for each, what in (
        (bands.monitor(), "band join state"),
        (moving, "moving join state"),
        (pairs.window(), "window join state"),
        (keyed, "border state"),
    ):
        state = bytearray(each.save())
        state[8] = 2
        with pytest.raises(vd.SnapshotError) as caught:
            each.load(bytes(state))
        assert str(caught.value) == (
            f"the saved {what} has format 2; this Vedette reads format 3: begin with a new state, in Spark with a new "
            f"checkpoint"
        )
    queries = bytearray(bands.to_bytes())
    queries[8] = 2
    with pytest.raises(vd.SnapshotError, match=r"^the saved query set has format 2; .* format 3: save the set again$"):
        vd.BandQuerySet.from_bytes(bytes(queries))


@pytest.mark.parametrize("known", [{}, {"Part": vd.Schema}])
def test_a_file_with_what_another_vedette_knew_is_refused(file, monkeypatch, known):
    monkeypatch.setattr(snapshot, "_CLASSES", known)

    with pytest.raises(vd.SnapshotError, match="holds what this Vedette does not know: save the set again with it"):
        vd.QuerySet.load(file)


def test_what_cannot_be_written_is_refused_and_leaves_nothing(file):
    queries = vd.QuerySet.load(file)
    with pytest.raises(vd.FileError, match="cannot write the query set"):
        queries.save(file.parent / "no such folder" / "queries.vedette")

    assert os.listdir(file.parent) == [file.name]


def test_a_file_is_for_its_owner_alone_unless_the_settings_say_otherwise(file, monkeypatch):
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    monkeypatch.setattr(private_files, "settings", lambda: vd.settings.Settings(file_mode=0o640))
    vd.QuerySet.load(file).save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_changes_of_a_loaded_set_do_not_reach_the_file(file):
    before = file.read_bytes()
    loaded = vd.QuerySet.load(file)
    loaded.remove_many(np.arange(2000))
    loaded.add("new" if loaded.ids.type == "string" else 99_999, "x > 4")

    assert loaded.match({"x": [2500.0]}).counts.tolist() == [5]
    assert file.read_bytes() == before
    assert vd.QuerySet.load(file).match({"x": [100.0]}).counts.tolist() == [4]
