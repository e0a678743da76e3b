"""A file of a store is downloaded once per host, even if processes ask concurrently or are killed."""

from __future__ import annotations

import hashlib
import os
import time

import accounts
import pytest

import vedette as vd
from vedette.registry.snapshots import host_copy

CONTENT = b"a compiled set " * 10_000
CHECKSUM = hashlib.blake2b(CONTENT, digest_size=16).hexdigest()
FILE = "uid-7-0f0f.queries"
# A process that fetches a file on request, from a store that logs each opening. `how` is the store's behaviour.
OPENER = """if True:
    import sys, time
    from contextlib import contextmanager
    from pathlib import Path
    from vedette.errors import VedetteError
    from vedette.registry.snapshots import host_copy
    from vedette.registry.snapshots.files import SnapshotFiles
    folder, file, checksum, how, host_copy.STALLED_SECONDS = *sys.argv[1:5], float(sys.argv[5])

    class Stream:
        def __init__(self, content):
            n = len(content) // 8
            self.pieces = [content[i : i + n] for i in range(0, len(content), n)]
            self.n_read = 0
        def read(self, size):
            self.n_read += 1
            if how == "hangs" and self.n_read == 4:
                print("half", flush=True)
                sys.stdin.readline()
            if how == "fails" and self.n_read == 4:
                raise OSError(5, "connection reset")
            time.sleep(0.3 if how == "slow" else 0.01)
            return self.pieces.pop(0) if self.pieces else b""

    class Store:
        @contextmanager
        def open_input_stream(self, path):
            with open(Path(folder, "opened"), "a") as log:
                log.write("x")
            yield Stream(Path(folder, path).read_bytes())

    where = SnapshotFiles(folder)
    where._store, where._folder = Store(), "bucket"
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        path = where.fetch(file, checksum)
        print(path.stat().st_ino, path, flush=True)
    except VedetteError as error:
        print(type(error).__name__, error, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def host(tmp_path):
    """Starts openers, which are ready when it returns."""
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / FILE).write_bytes(CONTENT)
    started = []

    def start(how="plain", stalled=100, file=FILE, n=1):
        made = [accounts.start(OPENER, tmp_path, file, CHECKSUM, how, stalled, temporary=tmp_path) for _ in range(n)]
        started.extend(made)
        assert {accounts.read_line(each) for each in made} == {"ready"}
        return made

    yield start
    for process in started:
        process.kill()
        process.communicate()


def begin(*processes):
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()


def n_downloads(tmp_path):
    return len((tmp_path / "opened").read_bytes())


def copies(tmp_path):
    return sorted(each.name for each in (tmp_path / f"vedette-{os.geteuid()}" / "downloads").iterdir())


def test_concurrent_processes_share_one_download(tmp_path, host):
    openers = host(n=6)
    begin(*openers)
    message = {accounts.read_line(each) for each in openers}

    assert n_downloads(tmp_path) == 1
    assert len(message) == 1
    assert copies(tmp_path) == [FILE]
    (late,) = host()
    begin(late)
    assert {accounts.read_line(late)} == message
    assert n_downloads(tmp_path) == 1


def test_if_the_process_that_downloads_is_killed_another_takes_over(tmp_path, host):
    (first,) = host("hangs")
    begin(first)
    assert accounts.read_line(first) == "half"
    others = host(n=3)
    begin(*others)
    time.sleep(0.5)
    assert copies(tmp_path) == [f"{FILE}.part"]
    first.kill()
    message = {accounts.read_line(each) for each in others}

    assert len(message) == 1
    assert message.pop().endswith(FILE)
    assert n_downloads(tmp_path) == 2
    assert copies(tmp_path) == [FILE]


def test_a_hanging_download_is_an_error_after_the_time_limit(tmp_path, host):
    (first,) = host("hangs")
    begin(first)
    assert accounts.read_line(first) == "half"
    (second,) = host(stalled=1)
    begin(second)

    assert accounts.read_line(second) == (
        f"FileError another process of this host is downloading {FILE} and has made no progress for 1 seconds, at "
        f"{first_bytes(tmp_path):,} bytes; end that process, or try again later"
    )


def first_bytes(tmp_path):
    return (tmp_path / f"vedette-{os.geteuid()}" / "downloads" / f"{FILE}.part").stat().st_size


def test_a_slow_download_that_makes_progress_is_waited_for(tmp_path, host):
    (first,) = host("slow")
    begin(first)
    (second,) = host(stalled=1.5)
    begin(second)  # the whole download takes longer than the limit

    assert accounts.read_line(second) == accounts.read_line(first)
    assert n_downloads(tmp_path) == 1


def test_a_failed_download_leaves_nothing_and_the_next_succeeds(tmp_path, host):
    (first,) = host("fails")
    begin(first)
    assert "cannot read the snapshot uid-7-0f0f.queries" in accounts.read_line(first)
    assert copies(tmp_path) == []
    (second,) = host()
    begin(second)
    assert accounts.read_line(second).endswith(FILE)


def test_a_file_that_is_damaged_in_the_store_is_an_error_and_not_kept(tmp_path, host):
    (tmp_path / "bucket" / FILE).write_bytes(CONTENT[:-1])
    (opener,) = host()
    begin(opener)

    assert accounts.read_line(opener).startswith("SnapshotError the snapshot uid-7-0f0f.queries is damaged")
    assert copies(tmp_path) == []


def test_a_copy_is_kept_while_used_and_deleted_by_the_next_fetch(tmp_path, host):
    for version in (8, 9):
        (tmp_path / "bucket" / f"uid-{version}-0f.queries").write_bytes(CONTENT)
    (first,), (second,), (third,) = host(), host(file="uid-8-0f.queries"), host(file="uid-9-0f.queries")
    begin(first)
    accounts.read_line(first)
    begin(second)
    accounts.read_line(second)
    assert copies(tmp_path) == [FILE, "uid-8-0f.queries"]
    first.kill()
    second.kill()
    first.wait()
    second.wait()
    begin(third)
    accounts.read_line(third)

    assert copies(tmp_path) == ["uid-9-0f.queries"]


def test_abandoned_drafts_and_long_unused_copies_are_deleted(tmp_path):
    for name in ("a-1-0.queries", "b-1-0.queries", "b-1-0.queries.part"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "a-1-0.queries", (0, 0))
    host_copy.remove_old(tmp_path, lambda name: False)

    assert [each.name for each in tmp_path.iterdir()] == ["b-1-0.queries"]


def test_an_error_during_a_download_is_raised_and_leaves_no_draft(tmp_path):
    def download(target):
        target.write(b"half")
        raise vd.FileError("no")

    with pytest.raises(vd.FileError, match="no"):
        host_copy.obtain(tmp_path / "file", lambda path: True, download)
    assert not list(tmp_path.iterdir())
