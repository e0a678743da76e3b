"""Compiled kernels are loaded only from folders that no other account can write to: loading one runs code."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import tempfile
from pathlib import Path

import accounts
import pytest
from numba.core import config

from vedette.native import kernel_files, kernel_folder
from vedette.native.kernel_folder import find_folders, read_trusted

IS_COMPILED = not config.DISABLE_JIT
# Prints the folder of the kernel, and whether it was found there.
ADD = """if True:
    import sys
    sys.path.insert(0, sys.argv[1])
    import added
    assert added.add(1) == 2
    print(added.add.stats.cache_path, len(added.add.stats.cache_hits), flush=True)
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
    find_folders.cache_clear()
    yield
    find_folders.cache_clear()


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
    kept.write_bytes(kernel_files.checksum(content) + content)
    assert run(sources, NUMBA_CACHE_DIR=str(caches)) == (folder, 0)
    assert mark.exists(), "what is planted where it is trusted runs, so that this test can fail"
    mark.rmdir()

    kept.write_bytes(kernel_files.checksum(content) + content)
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
    if os.geteuid() == 0:
        os.chown(folder, accounts.OTHER, accounts.OTHER)
        used, n_hits = run(sources, NUMBA_CACHE_DIR=str(caches))
        assert (used != folder, n_hits) == (True, 0)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: accounts.OTHER)
        assert find_folders("added", folder.parent) == (None, ())


def test_the_private_folder_is_in_the_user_cache_or_the_account_directory(tmp_path, monkeypatch, fresh_choice):
    unsafe, home, temporary = tmp_path / "unsafe", tmp_path / "home", tmp_path / "temporary"
    for each in (unsafe, home, temporary):
        each.mkdir()
    unsafe.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(kernel_folder, "account_directory", lambda name: temporary / name)
    in_home, in_temporary = home / "vedette" / "kernels" / "added", temporary / "kernels" / "added"

    assert find_folders("added", unsafe) == (in_home, (in_home,))
    find_folders.cache_clear()
    home.chmod(0o777)
    assert find_folders("added", unsafe) == (in_temporary, (in_temporary,))
    find_folders.cache_clear()
    temporary.chmod(0o777)
    assert find_folders("added", unsafe) == (None, ())


def test_two_packages_have_separate_folders(tmp_path, monkeypatch, fresh_choice):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))

    assert len({find_folders(name, None).store for name in ("a", "b")}) == 2


def test_a_link_to_a_folder_is_judged_by_its_target(tmp_path, monkeypatch, fresh_choice):
    (tmp_path / "open" / "__pycache__").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))

    assert find_folders("added", tmp_path / "link").store.is_relative_to(tmp_path / "home")


def test_a_folder_that_is_not_writable_is_read(tmp_path, monkeypatch, fresh_choice):
    beside = tmp_path / "image" / "__pycache__"
    beside.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    is_writable = kernel_folder._make_writable
    monkeypatch.setattr(kernel_folder, "_make_writable", lambda folder: folder != beside and is_writable(folder))

    folders = find_folders("added", beside.parent)

    assert folders.store == tmp_path / "home" / "vedette" / "kernels" / "added"
    assert folders.readable[:2] == (beside, folders.store)


@pytest.mark.skipif(not IS_COMPILED or os.geteuid() != 0, reason="only root can start processes of other accounts")
def test_another_account_uses_the_kernels_that_root_compiled_into_an_image():
    with tempfile.TemporaryDirectory() as image:  # pytest's own folders are closed to other accounts
        sources, homes = Path(image, "sources"), [Path(image, name) for name in ("first", "second")]
        for each, mode in ((Path(image), 0o755), (sources, 0o755), *((home, 0o1777) for home in homes)):
            each.mkdir(exist_ok=True)
            each.chmod(mode)
        (sources / "added.py").write_text(SOURCE)
        folder, _ = run(sources)
        (kept,) = folder.glob("*.nbc")
        # The other account may not be able to read Python itself.
        warm = "import numba, vedette.native.kernels\nassert numba.njit(lambda x: x + 2)(1) == 3\n"
        script = warm + ADD.replace("    import added", "    become()\n    import added")

        def run_as_other(home):
            used, n_hits = accounts.end(accounts.start(script, sources, temporary=home, uid=accounts.OTHER))
            return Path(used), int(n_hits)

        assert (folder, run_as_other(homes[0])[1]) == (sources / "__pycache__", 0)  # mode 0600
        kept.chmod(0o644)
        used, n_hits = run_as_other(homes[1])
        assert (used != folder, n_hits) == (True, 1)


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
