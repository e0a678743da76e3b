"""Processes of a host share one limit, whoever comes first, and whoever is killed."""

from __future__ import annotations

import errno
import os
import shutil

import accounts
import pytest

from vedette.host_files.memory_budget import MemoryBudget

USE = """if True:
    import sys
    from vedette.host_files.memory_budget import MemoryBudget
    budget = MemoryBudget("test")
    for line in sys.stdin:
        wanted = int(line)
        with budget.turn():
            n_bytes = min(wanted, budget.room(wanted, 1000))
            budget.use(n_bytes, wanted, 1000)
        print(n_bytes, flush=True)
"""


def want(process, n_bytes):
    """Let a process use as much as it may."""
    process.stdin.write(f"{n_bytes}\n")
    process.stdin.flush()
    return int(accounts.read_line(process))


@pytest.fixture
def processes(tmp_path):
    started = [accounts.start(USE, temporary=tmp_path) for _ in range(3)]
    yield started
    for process in started:
        process.kill()
        process.communicate()


def test_a_process_may_use_what_the_others_leave(processes):
    first, second, third = processes
    assert want(first, 700) == 700
    assert want(second, 100) == 100
    assert want(third, 100) == 100
    assert want(first, 900) == 800


def test_each_process_gets_an_equal_part_once_one_is_short(processes):
    first, second, _ = processes
    assert want(first, 2000) == 1000
    assert want(second, 2000) == 0
    assert want(first, 2000) == 500
    assert want(second, 2000) == 500
    assert want(first, 2000) == 500
    assert want(second, 100) == 100
    assert want(first, 2000) == 900


def test_what_a_killed_process_used_is_free(processes, tmp_path):
    first, second, _ = processes
    assert want(first, 900) == 900
    assert want(second, 500) == 100
    first.kill()
    first.communicate()

    assert want(second, 500) == 500
    folder = tmp_path / f"vedette-{os.geteuid()}" / "test"
    assert len(list(folder.glob("*.bytes"))) == 1


def test_damaged_files_of_others_are_ignored(processes, tmp_path):
    first, *_ = processes
    assert want(first, 10) == 10
    folder = tmp_path / f"vedette-{os.geteuid()}" / "test"
    (folder / "1-a.bytes").write_bytes(b"")
    (folder / "1-b.bytes").write_bytes(b"[null, 7]")
    (folder / "1-c.bytes").write_bytes(b"\xff" * 100)

    assert want(first, 1000) == 1000


def test_a_forked_process_has_its_own_use(tmp_path):
    budget = MemoryBudget("test", tmp_path)
    with budget.turn():
        budget.use(600, 600, 1000)
    child = os.fork()
    if not child:
        with budget.turn():
            os._exit(0 if budget.room(1000, 1000) == 400 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with budget.turn():
        assert budget.room(1000, 1000) == 1000


def test_without_a_directory_each_process_gets_an_equal_part(tmp_path):
    (tmp_path / "file").touch()
    budget = MemoryBudget("test", tmp_path / "file")
    with budget.turn():
        assert budget.room(1000, 1000) == 1000 // (os.cpu_count() or 1)
        budget.use(1, 1, 1000)


def test_a_directory_that_was_deleted_is_made_again(processes, tmp_path):
    first, second, _ = processes
    assert want(first, 400) == 400
    shutil.rmtree(tmp_path / f"vedette-{os.geteuid()}")

    assert want(first, 300) == 300
    assert want(second, 900) == 700
    assert want(first, 300) == 300


def test_a_limit_is_divided_if_the_disk_is_full(tmp_path, monkeypatch):
    budget = MemoryBudget("test", tmp_path)

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail)
    for _ in range(2):
        with budget.turn():
            budget.use(min(900, budget.room(900, 1000)), 900, 1000)
    with budget.turn():
        assert budget.room(900, 1000) == 1000 // (os.cpu_count() or 1)
