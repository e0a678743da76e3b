"""What experiments with a registry make of their runs: ratios of pairs, and the memory of processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.experiments.registry_follow import Pairs, Turns
from benchmarks.experiments.registry_memory import Memory, read_smaps

MAP = """\
import mmap, sys
file = open(sys.argv[1], "rb")
mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
assert sum(mapped[::4096]) == 0
copied = bytearray(mapped) if sys.argv[2] == "copy" else None
print("ready", flush=True)
sys.stdin.read()
"""
SMAPS = """\
7f0000000000-7f0000100000 rw-p 00000000 08:01 42                         /bases/a-1.queries
Size:               1024 kB
Pss:                 300 kB
Pss_Dirty:           100 kB
7f0000200000-7f0000300000 rw-p 00000000 00:00 0
Size:               2048 kB
Pss:                  50 kB
7f0000400000-7f0000500000 r-xp 00000000 08:01 43                         /usr/lib/libc.so.6
Size:                512 kB
Pss:                   7 kB
VmFlags: rd ex mr mw me
"""


def test_pairs_are_compared_one_by_one():
    slow_and_fast = [1.0, 2.0, 1.0, 2.0, 1.0]

    pairs = Pairs.of([1.1, 2.2, 1.1, 2.2, 1.3], slow_and_fast)

    assert (pairs.n, pairs.median) == (5, pytest.approx(1.1))
    assert pairs.quartiles == (pytest.approx(1.1), pytest.approx(1.1))
    assert pairs.interval == (pytest.approx(1.1), pytest.approx(1.3))


def test_the_interval_of_a_median_is_that_of_its_ranks():
    pairs = Pairs.of([float(n) for n in range(1, 41)], [1.0] * 40)

    assert pairs.median == 20.5
    assert pairs.interval == (14.0, 27.0)  # the 14th and the 27th of 40: a sign test at 5%


def test_streams_take_turns_in_being_first():
    order = []

    class Stream:
        def __init__(self, name):
            self.name = name

        def feed(self, file):
            order.append((self.name, file))
            return 1.0

    changes = []
    turns = Turns({name: Stream(name) for name in "ab"}, ["x", "y", "z"], {"b": lambda: changes.append(len(order))})
    for _ in range(3):
        turns.run()

    assert order == [("a", "x"), ("b", "x"), ("b", "y"), ("a", "y"), ("a", "z"), ("b", "z")]
    assert changes == [1, 2, 5]
    assert turns.seconds == {"a": [1.0] * 3, "b": [1.0] * 3}


def test_the_memory_of_a_process_is_read_by_its_mappings():
    assert read_smaps(SMAPS.splitlines(), "/bases") == (1024 << 10, 300 << 10, 350 << 10)
    assert read_smaps(SMAPS.splitlines(), "/other") == (0, 0, 50 << 10)


def test_a_process_that_copies_what_it_maps_keeps_more(tmp_path):
    """Mapped memory is shared; only the total memory shows a copy."""
    n_bytes, file = 32 << 20, tmp_path / "a-1.queries"
    file.write_bytes(bytes(n_bytes))

    def measure(how):
        command = [sys.executable, "-c", MAP, str(file), how]
        running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
        try:
            assert [each.stdout.readline() for each in running] == [b"ready\n"] * 2
            return Memory.measure(tmp_path)
        finally:
            for each in running:
                each.communicate()

    shared, copied = measure("share"), measure("copy")

    assert (shared.n_processes, shared.mapped, copied.mapped) == (2, n_bytes, n_bytes)
    assert shared.of_files == pytest.approx(n_bytes, rel=0.01)
    assert copied.of_files == pytest.approx(n_bytes, rel=0.01)
    assert copied.kept - shared.kept == pytest.approx(2 * n_bytes, rel=0.1)
