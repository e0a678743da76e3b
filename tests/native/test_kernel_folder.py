"""Compiled kernels are loaded only from folders that no other account can write to: loading one runs code."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
from pathlib import Path

import accounts
import pytest
from numba.core import config

from vedette.native import kernel_folder, kernels
from vedette.native.kernel_folder import choose_folder, read_trusted

IS_COMPILED = not config.DISABLE_JIT
# Prints the folder of the kernel, and whether it was found there.
ADD = """if True:
    import sys
    sys.path.insert(0, sys.argv[1])
    import added
    assert added.add(1) == 2
    print(added.add._cache._cache_file._folder, len(added.add.stats.cache_hits), flush=True)
"""
SOURCE = "from vedette.native.kernels import kernel\n@kernel\ndef add(x):\n    return x + 1\n"


class Planted:
    """Creates a file when it is unpickled."""

    def __init__(self, mark):
        self._mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self._mark),)


@pytest.fixture
def fresh_choice():
    choose_folder.cache_clear()
    yield
    choose_folder.cache_clear()


def run(folder, **variables):
    """The folder in which a process stored or found the kernel, and how often it found it."""
    kept, n_hits = accounts.end(accounts.start(ADD, folder, temporary=folder, **variables))
    return Path(kept), int(n_hits)


@pytest.fixture
def sources(tmp_path):
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "added.py").write_text(SOURCE)
    return folder


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize("harm", ["folder", "parent", "file", "link"])
def test_a_file_that_another_account_could_have_written_does_not_run(tmp_path, sources, harm):
    caches, mark = tmp_path / "caches", tmp_path / "ran"
    folder, _ = run(sources, NUMBA_CACHE_DIR=str(caches))
    (kept,) = folder.glob("*.nbc")
    content = pickle.dumps(Planted(mark))
    kept.write_bytes(kernels._checksum(content) + content)
    assert run(sources, NUMBA_CACHE_DIR=str(caches)) == (folder, 0)
    assert mark.exists(), "what is planted where it is trusted runs, so that this test can fail"
    mark.rmdir()

    kept.write_bytes(kernels._checksum(content) + content)
    if harm == "folder":
        folder.chmod(0o777)
    elif harm == "parent":
        caches.chmod(0o777)
    elif harm == "file":
        kept.chmod(0o666)
    else:
        kept.rename(tmp_path / "elsewhere")
        kept.symlink_to(tmp_path / "elsewhere")
    used, _ = run(sources, NUMBA_CACHE_DIR=str(caches))

    assert not mark.exists()
    assert (used == folder) == (harm in ("file", "link"))
    assert run(sources, NUMBA_CACHE_DIR=str(caches)) == (used, 1)  # compiled once, and stored in a safe folder


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_a_folder_of_another_account_is_not_used(tmp_path, sources, monkeypatch, fresh_choice):
    caches = tmp_path / "caches"
    folder, _ = run(sources, NUMBA_CACHE_DIR=str(caches))
    assert choose_folder(str(folder)) == folder
    choose_folder.cache_clear()
    if os.geteuid() == 0:
        os.chown(folder, accounts.OTHER, accounts.OTHER)
        used, n_hits = run(sources, NUMBA_CACHE_DIR=str(caches))
        assert (used != folder, n_hits) == (True, 0)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: accounts.OTHER)
    monkeypatch.setattr(kernel_folder, "account_directory", lambda name: tmp_path / name)
    assert choose_folder(str(folder)) != folder


def test_the_private_folder_is_in_the_user_cache_or_the_account_directory(tmp_path, monkeypatch, fresh_choice):
    unsafe, home, temporary = tmp_path / "unsafe", tmp_path / "home", tmp_path / "temporary"
    for each in (unsafe, home, temporary):
        each.mkdir()
    unsafe.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(kernel_folder, "account_directory", lambda name: temporary / name)

    assert choose_folder(str(unsafe)).parent == home / "vedette"
    choose_folder.cache_clear()
    home.chmod(0o777)
    assert choose_folder(str(unsafe)).parent == temporary / "kernels"
    choose_folder.cache_clear()
    temporary.chmod(0o777)
    assert choose_folder(str(unsafe)) is None


def test_two_packages_have_separate_folders(tmp_path, monkeypatch, fresh_choice):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kernel_folder, "is_trusted_directory", lambda path: "unsafe" not in path)
    made = {choose_folder(str(tmp_path / "unsafe" / name / "__pycache__")) for name in ("a", "b")}

    assert len(made) == 2


def test_a_link_to_a_folder_is_judged_by_its_target(tmp_path, monkeypatch, fresh_choice):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))

    assert choose_folder(str(tmp_path / "link")).is_relative_to(tmp_path / "home")


@pytest.mark.parametrize("kind", ["pipe", "folder", "writable by the group"])
def test_only_a_file_that_no_other_account_can_write_is_read(tmp_path, kind):
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"x")
        assert read_trusted(path) == b"x"
        path.chmod(0o620)

    with pytest.raises(OSError, match=r"another account could have written|Is a directory"):
        read_trusted(path)


@pytest.mark.skipif(not IS_COMPILED, reason="nothing is compiled")
def test_cached_kernels_are_private_and_found_again(tmp_path, sources):
    before = os.umask(0o002)  # as on systems with a group per user
    try:
        folder, _ = run(sources, NUMBA_CACHE_DIR=str(tmp_path / "caches"))
        assert run(sources, NUMBA_CACHE_DIR=str(tmp_path / "caches")) == (folder, 1)
    finally:
        os.umask(before)
    (kept,) = folder.glob("*.nbc")

    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    shutil.rmtree(folder)
