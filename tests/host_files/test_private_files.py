"""Files and directories are private, and trusted only if no other account can change them."""

from __future__ import annotations

import os
import stat

import accounts
import pytest

from vedette.host_files import private_files
from vedette.host_files.private_files import create_file, is_trusted_directory, make_directory
from vedette.settings import Settings


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.parametrize("modes", [(0o600, 0o700), (0o640, 0o750), (0o660, 0o2770)])
@pytest.mark.usefixtures("umask")
def test_created_files_have_the_modes_of_the_settings_for_any_umask(tmp_path, monkeypatch, modes):
    chosen = Settings(file_mode=modes[0], directory_mode=modes[1])
    monkeypatch.setattr(private_files, "settings", lambda: chosen)
    tmp_path.chmod(0o711)
    make_directory(tmp_path / "a" / "b")
    make_directory(tmp_path / "a" / "b")
    with create_file(tmp_path / "a" / "file") as file:
        file.write(b"x")

    assert (mode_of(tmp_path / "a" / "file"), mode_of(tmp_path / "a"), mode_of(tmp_path / "a" / "b")) == (
        modes[0],
        modes[1],
        modes[1],
    )
    assert mode_of(tmp_path) == 0o711


def test_a_file_is_not_used_as_a_directory_nor_overwritten(tmp_path):
    create_file(tmp_path / "file").close()
    with pytest.raises(FileExistsError):
        make_directory(tmp_path / "file")
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "file")


@pytest.mark.parametrize(
    ("parent", "own", "is_safe"),
    [
        (0o755, 0o755, True),
        (0o755, 0o700, True),
        (0o1777, 0o700, True),  # as /tmp is
        (0o755, 0o775, False),
        (0o755, 0o757, False),
        (0o755, 0o1777, False),
        (0o777, 0o700, False),
        (0o775, 0o700, False),
    ],
)
def test_a_directory_is_trusted_if_no_other_account_can_change_it_or_its_parents(tmp_path, parent, own, is_safe):
    folder = tmp_path / "parent" / "own"
    folder.mkdir(parents=True)
    folder.chmod(own)
    folder.parent.chmod(parent)

    assert is_trusted_directory(folder) == is_safe


def test_a_directory_of_another_account_is_not_trusted(tmp_path, monkeypatch):
    (tmp_path / "within").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path, accounts.OTHER, accounts.OTHER)
    else:  # checked as another account
        monkeypatch.setattr(os, "geteuid", lambda: accounts.OTHER)

    assert not is_trusted_directory(tmp_path)
    assert not is_trusted_directory(tmp_path / "within")
    assert not is_trusted_directory(tmp_path / "none")
