"""The cache of compiled kernels: correct with concurrent processes, and valid only for the same sources."""

from __future__ import annotations

import errno
import importlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import accounts
import pytest
from numba.core import config
from numba.core.serialize import dumps

from vedette.native import kernel_bundle, kernel_cache, kernel_files, kernel_sources, kernels
from vedette.native.kernel_folder import KernelFolders, find_folders
from vedette.native.portable_cpu import portable_cpu

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="nothing is compiled")

N_KERNELS = 6
KERNELS = "from vedette.native.kernels import kernel\n" + "".join(
    f"@kernel\ndef add_{i}(x):\n    return x + {i}\n" for i in range(N_KERNELS)
)
# Compiles each kernel for one type while the other process compiles it for another.
COMPILE = """if True:
    import sys, time
    from pathlib import Path
    import added
    own, other, value = sys.argv[1], sys.argv[2], {"int": 3, "float": 3.5}[sys.argv[1]]
    for i in range(int(sys.argv[3])):
        Path(f"{own}-{i}").touch()
        while not Path(f"{other}-{i}").exists():
            time.sleep(0.001)
        assert getattr(added, f"add_{i}")(value) == value + i
"""

KERNEL = "from vedette.native.kernels import kernel\n@kernel\ndef add(x):\n    return x + 1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with modules that `load` imports again."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    forget()


def forget():
    for name in ("added", "outer", "outer.inner", "outer.whole"):
        sys.modules.pop(name, None)
    kernel_sources.note_sources.cache_clear()
    kernel_sources.source_digest.cache_clear()
    find_folders.cache_clear()
    importlib.invalidate_caches()


def load(name):
    """The module, imported as by another process."""
    forget()
    return importlib.import_module(name)


@pytest.mark.full
def test_concurrent_compilations_of_a_kernel_for_two_types_are_both_cached(folder):
    (folder / "added.py").write_text(KERNELS)
    places = [str(folder), str(Path(kernels.__file__).parents[2])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-c", COMPILE]

    started = [
        subprocess.Popen([*command, *types, str(N_KERNELS)], cwd=folder, env=environment)
        for types in (("int", "float"), ("float", "int"))
    ]
    assert [process.wait(300) for process in started] == [0, 0]

    added = load("added")
    for i in range(N_KERNELS):
        add = getattr(added, f"add_{i}")
        assert (add(3), add(3.5)) == (3 + i, 3.5 + i)
        assert (sum(add.stats.cache_hits.values()), sum(add.stats.cache_misses.values())) == (2, 0)


@pytest.mark.parametrize("how", ["kernel", "constant"])
@pytest.mark.full
def test_a_kernel_is_compiled_again_if_a_module_that_it_uses_changes(folder, how):
    inner = {
        "kernel": "from vedette.native.kernels import kernel\nSTEP = 1\n@kernel\ndef add(x):\n    return x + {}\n",
        "constant": "from vedette.native.kernels import kernel\nSTEP = {}\n@kernel\ndef add(x):\n    return x\n",
    }[how]
    (folder / "outer").mkdir()
    (folder / "outer" / "__init__.py").touch()
    (folder / "outer" / "whole.py").write_text(
        "from outer.inner import STEP, add\nfrom vedette.native.kernels import kernel\n"
        "@kernel\ndef within(x):\n    return add(x)\n@kernel\ndef work(x):\n    return within(x) * 10 + STEP\n"
    )

    def answer(value):
        (folder / "outer" / "inner.py").write_text(inner.format(value))
        work = load("outer.whole").work
        return work(0), sum(work.stats.cache_hits.values())

    first, second = {"kernel": (21, 31), "constant": (2, 3)}[how]
    assert [answer(2), answer(2), answer(3)] == [(first, 0), (first, 1), (second, 0)]


@pytest.mark.full
def test_a_partial_file_is_written_again_and_files_of_older_sources_are_deleted(folder):
    (folder / "added.py").write_text(KERNELS)
    assert load("added").add_1(1) == 2
    (kept,) = (folder / "__pycache__").glob("added.add_1-*")
    whole = kept.read_bytes()

    flipped = whole[:-50] + bytes([whole[-50] ^ 1]) + whole[-49:]
    foreign = pickle.dumps(("another key", ("cpu", ""), None))
    unknown = b"cvedette.nothing\nnothing\n."  # a class that cannot be imported
    checked = [kernel_files.checksum(each) + each for each in (b"", b"no pickle", foreign, unknown, pickle.dumps(7))]
    for left in (b"", b"x", bytes(len(whole)), whole[:-9], flipped, *checked):
        kept.write_bytes(left)
        for is_found in (False, True):
            add = load("added").add_1
            assert (add(1), len(add.stats.cache_hits)) == (2, is_found)

    (folder / "added.py").write_text(KERNELS.replace("return x + 1\n", "return x + 5\n"))
    assert load("added").add_1(1) == 6
    (after,) = (folder / "__pycache__").glob("added.add_1-*")
    assert after != kept


@pytest.mark.full
def test_a_file_that_this_numba_cannot_use_is_compiled_again(folder):
    (folder / "added.py").write_text(KERNELS)
    assert load("added").add_1(1) == 2
    (kept,) = (folder / "__pycache__").glob("added.add_1-*")
    key, cpu, data = pickle.loads(kept.read_bytes()[kernel_files._CHECKSUM_BYTES :])
    for other in (None, (), data[:-1], ("of another version", *data[1:]), (*data[:1], b"no code", *data[2:])):
        content = dumps((key, cpu, other))
        kept.write_bytes(kernel_files.checksum(content) + content)
        assert load("added").add_1(1) == 2


def test_without_a_writable_folder_kernels_are_compiled_and_not_cached(folder, monkeypatch):
    monkeypatch.setattr(kernel_cache, "find_folders", lambda *_: KernelFolders(None, ()))
    (folder / "unkept.py").write_text(
        "from vedette.native.kernels import kernel\n@kernel\ndef add(x):\n    return x + 1\n"
    )

    assert importlib.import_module("unkept").add(3) == 4
    assert not list(folder.rglob("*.nbc"))


def test_a_kernel_works_if_its_file_cannot_be_written(folder, monkeypatch):
    (folder / "full.py").write_text(
        "from vedette.native.kernels import kernel\n@kernel\ndef add(x):\n    return x + 1\n"
    )
    full = importlib.import_module("full")

    def write(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(kernel_files.os, "open", write)
    assert full.add(3) == 4
    monkeypatch.undo()
    assert not list(folder.rglob("*.nbc*"))


def test_a_copy_of_the_sources_with_other_times_uses_the_same_kernels(folder, monkeypatch):
    (folder / "added.py").write_text(KERNEL)
    add = load("added").add
    assert (add(1), len(add.stats.cache_misses)) == (2, 1)
    copy = folder / "elsewhere"
    copy.mkdir()
    shutil.copytree(folder / "__pycache__", copy / "__pycache__")
    (copy / "added.py").write_text(KERNEL)
    os.utime(copy / "added.py", (1, 1))
    monkeypatch.syspath_prepend(copy)

    add = load("added").add

    assert Path(add.stats.cache_path).parent == copy
    assert (add(1), len(add.stats.cache_hits), len(add.stats.cache_misses)) == (2, 1, 0)


# Prints how often the kernel was loaded, and how often it was compiled.
CALL = """if True:
    import sys
    sys.path.insert(0, sys.argv[1])
    from vedette.native import portable_cpu
    if len(sys.argv) > 2:
        portable_cpu._find = lambda architecture: ("x86-64-v3", ["avx2"])
    import added
    assert added.add(1) == 2
    print(sum(added.add.stats.cache_hits.values()), sum(added.add.stats.cache_misses.values()))
"""


@pytest.mark.skipif(portable_cpu() is None or portable_cpu()[1] != [], reason="this CPU cannot run portable kernels")
def test_a_portable_kernel_is_used_by_every_cpu_that_has_its_features(folder):
    (folder / "added.py").write_text(KERNEL)

    def run(cpu, *lacks):
        cpus = {} if cpu is None else {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
        return accounts.end(accounts.start(CALL, folder, *lacks, temporary=folder, **cpus))

    other, portable = "x86-64" if portable_cpu()[0] != "generic" else "cortex-a72", portable_cpu()[0]
    runs = run(other), run(portable), run(None), run(None, "lacks a feature")
    assert runs == (["0", "1"], ["0", "1"], ["1", "0"], ["0", "1"])


# Calls kernels of which `total` contains `fill`, and prints how many were compiled.
TWO_KERNELS = """from vedette.native.kernels import kernel
import numpy as np
@kernel
def fill(n):
    return np.zeros(n)
@kernel
def total(n):
    return fill(n).sum()
"""
CALL_IN_ORDER = """if True:
    import sys
    sys.path.insert(0, sys.argv[1])
    import added
    answers = {"fill": lambda: added.fill(3).tolist() == [0, 0, 0], "total": lambda: added.total(3) == 0}
    assert all(answers[name]() for name in sys.argv[2:])
    from vedette.native.kernel_cache import counts
    print(counts["compiled"])
"""


def test_kernels_that_two_processes_compiled_work_together_in_a_third_one(folder):
    (folder / "added.py").write_text(TWO_KERNELS)

    def run(*names):
        return accounts.end(accounts.start(CALL_IN_ORDER, folder, *names, temporary=folder))

    assert run("fill", "total") == ["2"]
    next((folder / "__pycache__").glob("added.fill-*")).unlink()
    assert run("total", "fill") == ["1"]  # with Numba's own numbers, this `fill` has the name of the first one
    assert run("total", "fill") == ["0"]


# Prints the names under which two processes, forked after the import of the package, would compile one function.
FORK = """if True:
    import os
    from numba.core.bytecode import FunctionIdentity
    import vedette.native.kernels
    for _ in range(2):
        if os.fork() == 0:
            print(FunctionIdentity.from_function(become).unique_name, flush=True)
            os._exit(0)
        os.wait()
"""


def test_forked_processes_compile_under_different_names(tmp_path):
    assert len(set(accounts.end(accounts.start(FORK, temporary=tmp_path)))) == 2


def test_kernels_of_an_archive_are_used_if_it_has_the_digest_of_its_sender(folder, monkeypatch):
    monkeypatch.setattr(kernel_bundle, "_accepted", {})
    (folder / "added.py").write_text(KERNEL)
    assert load("added").add(1) == 2
    files = kernel_files.current_files(kernel_cache.package_folders("added"), "added")
    assert len(files) == 1
    archive = kernel_bundle.pack_files(files)
    digest = kernel_bundle.bundle_digest(archive)
    assert archive == kernel_bundle.pack_files(files)

    def count(archive):
        """Whether an archive is used, and how often the kernel was loaded in a process with empty folders."""
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        kernel_bundle._accepted.clear()
        is_used = kernel_bundle.accept(archive, digest)
        add = load("added").add
        return is_used, add(1), len(add.stats.cache_hits)

    assert count(archive) == (True, 2, 1)
    changed = archive[:100] + bytes([archive[100] ^ 1]) + archive[101:]
    for other in (changed, archive[:-1], b"", archive + b"x"):
        assert count(other) == (False, 2, 0)


def test_files_of_other_sources_are_not_packed(folder):
    (folder / "added.py").write_text(KERNEL)
    assert load("added").add(1) == 2
    (folder / "added.py").write_text(KERNEL.replace("+ 1", "+ 2"))
    load("added")

    assert kernel_files.current_files(kernel_cache.package_folders("added"), "added") == {}
