"""`vedette warm` stores kernels where every account finds them, and says what prevents it."""

from __future__ import annotations

import stat

import pytest
from numba.core import config
from typer.testing import CliRunner

from vedette.cli.app import app
from vedette.errors import FileError
from vedette.native.kernel_folder import KernelFolders
from vedette.warm import kernels
from vedette.warm.kernels import Progress, warm_kernels

is_compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders with a kernel each, of which the first is writable; and what a run compiles."""
    store, other = tmp_path / "store", tmp_path / "other"
    for each in (store, other):
        each.mkdir(mode=0o700)
        (each / f"{each.name}.nbc").write_bytes(b"code")
        (each / f"{each.name}.nbc").chmod(0o600)
    found = {each.name: each for folder in (store, other) for each in folder.iterdir()}
    monkeypatch.setattr(kernels, "package_folders", lambda package: KernelFolders(store, (store, other)))
    monkeypatch.setattr(kernels, "current_files", lambda folders, package: found)
    monkeypatch.setattr(kernels, "portable_cpu", lambda: ("x86-64-v3", []))

    def compile_(cpu, tell):
        tell(Progress("border", 1.5, 3, 4))
        return 3

    monkeypatch.setattr(kernels, "_compile", compile_)
    return store, other


@is_compiled
def test_all_kernels_are_in_the_writable_folder_and_readable_to_others(folders):
    store, _ = folders
    made = warm_kernels()

    assert (made.folder, made.cpu, made.n_files, made.n_compiled) == (store, "x86-64-v3", 2, 3)
    assert sorted(each.name for each in store.iterdir()) == ["other.nbc", "store.nbc"]
    assert {stat.S_IMODE(each.stat().st_mode) for each in store.iterdir()} == {0o644}
    assert stat.S_IMODE(store.stat().st_mode) == 0o755


@is_compiled
def test_the_command_prints_progress_and_the_folder(folders):
    done = CliRunner().invoke(app, ["warm"])

    assert (done.exit_code, done.stdout) == (0, "border                   3 compiled    4 found    1.5 s\n")
    assert f"vedette: 2 kernels in {folders[0]}, 3 of them compiled now for x86-64-v3" in done.stderr
    assert CliRunner().invoke(app, ["warm", "--quiet"]).output == ""


@is_compiled
def test_what_prevents_it_is_said(folders, monkeypatch):
    with pytest.raises(FileError, match="cpu must be one of: 'portable', 'native'; got 'fast'"):
        warm_kernels("fast")
    done = CliRunner().invoke(app, ["warm", "--cpu", "fast"])
    assert (done.exit_code, "--cpu must be one of" in done.stderr) == (2, True)
    monkeypatch.setattr(kernels, "portable_cpu", lambda: ("x86-64-v3", ["avx2", "fma"]))
    with pytest.raises(FileError, match="this CPU lacks avx2, fma, so it cannot run code for x86-64-v3; use 'native'"):
        warm_kernels()
    assert warm_kernels("native").cpu == "this CPU"
    monkeypatch.setattr(kernels, "portable_cpu", lambda: None)
    with pytest.raises(FileError, match="exists for x86-64 and ARM only"):
        warm_kernels()
    monkeypatch.setattr(kernels, "package_folders", lambda package: KernelFolders(None, ()))
    with pytest.raises(FileError, match="set NUMBA_CACHE_DIR to such a folder"):
        warm_kernels("native")


def test_without_jit_nothing_can_be_compiled(monkeypatch):
    monkeypatch.setattr(kernels.config, "DISABLE_JIT", True)

    with pytest.raises(FileError, match="NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it"):
        warm_kernels()


@is_compiled
def test_a_process_that_fails_is_reported(monkeypatch):
    monkeypatch.setattr(kernels.sys, "executable", "false")

    with pytest.raises(FileError, match="the process that compiles ended with code 1"):
        warm_kernels("native")
