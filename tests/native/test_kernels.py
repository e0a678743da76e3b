"""The cache of compiled kernels: correct with concurrent processes, and valid only for the same sources."""

from __future__ import annotations

import errno
import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import config
from numba.core.serialize import dumps

from vedette.native import kernels

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
    kernels._note_sources.cache_clear()
    kernels._source_digest.cache_clear()
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
    foreign = pickle.dumps(("another key", None))
    unknown = b"cvedette.nothing\nnothing\n."  # a class that cannot be imported
    checked = [kernels._checksum(each) + each for each in (b"", b"no pickle", foreign, unknown, pickle.dumps(7))]
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
    key, data = pickle.loads(kept.read_bytes()[kernels._CHECKSUM_BYTES :])
    for other in (None, (), data[:-1], ("of another version", *data[1:]), (*data[:1], b"no code", *data[2:])):
        content = dumps((key, other))
        kept.write_bytes(kernels._checksum(content) + content)
        assert load("added").add_1(1) == 2


def test_without_a_writable_folder_kernels_are_compiled_and_not_cached(folder, monkeypatch):
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
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

    monkeypatch.setattr(kernels.os, "open", write)
    assert full.add(3) == 4
    monkeypatch.undo()
    assert not list(folder.rglob("*.nbc*"))
