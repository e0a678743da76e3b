"""The directory of an account: its processes share it, and a directory of another account is not used."""

from __future__ import annotations

import os
import stat

import accounts
import pytest

from vedette.host_files import account_directory as module
from vedette.host_files.account_directory import account_directory

IS_ROOT = os.geteuid() == 0
ASK = "from vedette.host_files.account_directory import account_directory; become(); print(account_directory('x'))"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_it_is_private_for_any_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        made = account_directory("sets", tmp_path)
    finally:
        os.umask(before)

    assert (made, mode_of(made), mode_of(made.parent)) == (tmp_path / made.parent.name / "sets", 0o700, 0o700)
    assert account_directory("sets", tmp_path) == made


@pytest.mark.parametrize("harm", ["open to others", "a link", "a file", "of another account"])
def test_a_directory_of_another_account_is_not_used_and_processes_agree_on_another(tmp_path, monkeypatch, harm):
    usual, elsewhere = tmp_path / f"vedette-{os.geteuid()}", tmp_path / "elsewhere"
    elsewhere.mkdir()
    if harm == "a link":
        usual.symlink_to(elsewhere)
    elif harm == "a file":
        usual.touch()
    else:
        usual.mkdir()
        usual.chmod(0o777 if harm == "open to others" else 0o755)
    if harm == "of another account":
        if IS_ROOT:
            os.chown(usual, accounts.OTHER, accounts.OTHER)
        else:  # the checks run as another account
            is_own = module._is_own
            monkeypatch.setattr(module, "_is_own", lambda path: path != usual and is_own(path))

    made = account_directory("sets", tmp_path)

    assert made.parent not in (usual, elsewhere)
    assert (mode_of(made.parent), made.stat().st_uid) == (0o700, os.geteuid())
    assert account_directory("sets", tmp_path) == made
    assert not list(elsewhere.iterdir())


def test_read_access_of_other_accounts_is_removed(tmp_path):
    usual = tmp_path / f"vedette-{os.geteuid()}"
    usual.mkdir()
    usual.chmod(0o755)

    assert account_directory("sets", tmp_path).parent == usual
    assert mode_of(usual) == 0o700


def test_two_accounts_share_one_temporary_directory(tmp_path):
    accounts.open_to_all(tmp_path)
    uids = accounts.others()
    started = [accounts.start(ASK, temporary=tmp_path, uid=uid) for uid in uids * 2]
    message = [accounts.end(process)[0] for process in started]

    assert len(set(message)) == len(uids)


def test_a_directory_that_cannot_be_created_raises(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        account_directory("sets", tmp_path / "none")
