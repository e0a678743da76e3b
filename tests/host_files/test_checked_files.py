"""A file counts as checked only in the checked state, and only by notes that no other account can write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from vedette.host_files import checked_files
from vedette.host_files.checked_files import is_checked, note_checked


@pytest.fixture
def new_process(tmp_path, monkeypatch):
    """Reset the caches, as in a new process of the host."""

    def begin():
        monkeypatch.setattr(checked_files, "_checked", set())
        monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
        checked_files._folder.cache_clear()
        checked_files._remove_old.cache_clear()

    begin()
    yield begin
    checked_files._folder.cache_clear()
    checked_files._remove_old.cache_clear()


def notes_folder(tmp_path):
    return tmp_path / f"vedette-{os.geteuid()}" / "checked"


def test_another_process_knows_a_checked_file_until_it_changes(tmp_path, new_process):
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    assert not is_checked(file.stat(), "digest 1")
    note_checked(file.stat(), "digest 1")
    new_process()

    assert is_checked(file.stat(), "digest 1")
    assert not is_checked(file.stat(), "digest 2")
    before = file.stat()
    file.write_bytes(b"abd")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # hides the change
    assert not is_checked(file.stat(), "digest 1")


@pytest.mark.parametrize("harm", ["open to others", "a link", "a file"])
def test_a_folder_that_other_accounts_can_write_to_is_not_used(tmp_path, new_process, harm):
    folder = notes_folder(tmp_path).parent
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    if harm == "open to others":
        folder.mkdir()
        folder.chmod(0o770)
    elif harm == "a link":
        folder.symlink_to(other)
    else:
        folder.touch()
    noted = other.stat()
    note_checked(noted, "digest 1")
    assert is_checked(other.stat(), "digest 1")  # cached in this process
    new_process()

    assert is_checked(noted, "digest 1")  # from its own folder
    assert not list(other.iterdir())
    assert not folder.is_dir() or not list(folder.iterdir())


def test_long_unused_notes_are_removed(tmp_path, new_process):
    note_checked(tmp_path.stat(), "old")
    (old,) = notes_folder(tmp_path).iterdir()
    os.utime(old, (0, 0))
    new_process()
    note_checked(tmp_path.stat(), "new")

    assert old not in list(notes_folder(tmp_path).iterdir())
    assert len(list(notes_folder(tmp_path).iterdir())) == 1


def test_a_process_reads_all_notes_once(tmp_path, new_process, monkeypatch):
    listed = []
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda folder: listed.append(folder) or iterdir(folder))
    for number in range(5):
        note_checked(tmp_path.stat(), f"digest {number}")

    assert listed.count(notes_folder(tmp_path)) == 1
