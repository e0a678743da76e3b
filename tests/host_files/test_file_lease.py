"""A file is kept while a process has a lease on it, and can be deleted after the last one has ended."""

from __future__ import annotations

import accounts

from vedette.host_files.file_lease import FileLease, remove_scratch, remove_unused, scratch_directory

HOLD = """if True:
    import sys
    from vedette.host_files.file_lease import FileLease
    lease = FileLease.take(sys.argv[1])
    print("held", flush=True)
    sys.stdin.readline()
"""
SCRATCH = """if True:
    import sys
    from pathlib import Path
    from vedette.host_files.file_lease import scratch_directory
    with scratch_directory(Path(sys.argv[1])) as made:
        (made / "half").touch()
        print(made, flush=True)
        sys.stdin.readline()
"""
# Takes and releases leases, and creates a missing file, while other processes delete unused files.
CONTEND = """if True:
    import sys, time
    from pathlib import Path
    from vedette.host_files.file_lease import FileLease, remove_unused
    path, until = Path(sys.argv[1]), time.monotonic() + 2
    while time.monotonic() < until:
        lease = FileLease.take(path)
        if lease is None:
            path.touch()
        else:
            assert path.exists()
            lease.release()
        remove_unused(path)
"""


def test_a_file_can_be_deleted_after_its_last_user_ended_or_was_killed(tmp_path):
    file = tmp_path / "file"
    file.touch()
    first, second = (accounts.start(HOLD, file, temporary=tmp_path) for _ in range(2))
    assert [accounts.read_line(each) for each in (first, second)] == ["held", "held"]
    remove_unused(file)
    assert file.exists()
    first.kill()
    first.communicate()
    remove_unused(file)
    assert file.exists()
    second.kill()
    second.communicate()
    remove_unused(file)

    assert not file.exists()


def test_a_lease_is_on_the_file_and_not_on_its_name(tmp_path):
    file = tmp_path / "file"
    assert FileLease.take(file) is None
    file.touch()
    lease = FileLease.take(file)
    file.unlink()
    file.touch()
    remove_unused(file)
    assert not file.exists()
    lease.release()
    lease.release()


def test_concurrent_leases_and_deletions_never_leave_a_lease_on_a_deleted_file(tmp_path):
    started = [accounts.start(CONTEND, tmp_path / "file", temporary=tmp_path) for _ in range(3)]

    for process in started:
        accounts.end(process)


def test_scratch_directories_are_deleted_even_after_a_kill_but_not_while_in_use(tmp_path):
    process = accounts.start(SCRATCH, tmp_path, temporary=tmp_path)
    accounts.read_line(process)
    with scratch_directory(tmp_path) as own:
        remove_scratch(tmp_path)
        assert len(list(tmp_path.iterdir())) == 2
        process.kill()
        process.communicate()
        remove_scratch(tmp_path)
        assert list(tmp_path.iterdir()) == [own]
    assert list(tmp_path.iterdir()) == []
