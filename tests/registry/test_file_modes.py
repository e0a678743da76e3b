"""Only the owner can use databases, their logs and compiled sets, unless the settings allow more."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from pathlib import Path

import accounts
import pytest

import vedette as vd
from vedette.host_files import private_files
from vedette.registry.snapshots import files as snapshot_files
from vedette.registry.snapshots.files import place_of
from vedette.settings import Settings


@pytest.fixture
def umask():
    before = os.umask(0o000)
    yield
    os.umask(before)


def modes_in(folder):
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}


@pytest.mark.parametrize("modes", [(0o600, 0o700), (0o660, 0o770)])
@pytest.mark.usefixtures("umask")
def test_a_registry_on_sqlite_and_its_snapshots_have_the_modes_of_the_settings(tmp_path, monkeypatch, modes):
    chosen = Settings(file_mode=modes[0], directory_mode=modes[1])
    monkeypatch.setattr(private_files, "settings", lambda: chosen)
    registry = vd.Registry(f"sqlite:///{tmp_path / 'alerts.db'}")
    registry.create("alerts", schema="x double")
    registry.add("alerts", "a", "x < 5")
    made = registry.compact("alerts")

    file, directory = modes
    assert modes_in(tmp_path) == {
        "alerts.db": file,
        "alerts.db-wal": file,
        "alerts.db-shm": file,
        "alerts.db.snapshots": directory,
        made.file: file,
    }
    registry.close()


# Uses a registry as an account of a group. It imports first, then switches to that account.
MEMBER = """if True:
    import sys
    import vedette as vd
    from vedette.registry.snapshots import bases as snapshots
    from vedette.settings import settings
    snapshots.FEW_CHANGES = 0
    settings(), vd.QuerySet("x double").match_one({"x": 1.0})
    warm = vd.Registry(f"sqlite:///{sys.argv[1]}.db")  # imports the lazy modules
    warm.create("alerts", schema="x double")
    warm.add("alerts", "a", "x < 5")
    warm.compact("alerts")
    warm.follow("alerts").open(1).match_one({"x": 1.0})
    become()
    registry = vd.Registry("sqlite:///shared/alerts.db")
    if not registry.sets():
        registry.create("alerts", schema="x double")
    version = registry.add("alerts", sys.argv[1], "x < 5")
    registry.compact("alerts")
    print(*sorted(registry.follow("alerts").open(version).match_one({"x": 1.0})), flush=True)
    sys.stdin.readline()
"""


def test_accounts_of_a_group_share_a_registry_with_the_documented_modes(tmp_path):
    accounts.open_to_all(tmp_path)
    shared = tmp_path / "shared"
    shared.mkdir()
    if os.geteuid() == 0:
        os.chown(shared, -1, accounts.OTHER)
    shared.chmod(0o2770)
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    modes = dict(re.findall(r"(VEDETTE_(?:FILE|DIRECTORY)_MODE)=(\d+)", page))
    first = accounts.start(MEMBER, "a", temporary=tmp_path, **modes)
    assert accounts.read_line(first) == "a"
    second = accounts.start(MEMBER, "b", temporary=tmp_path, uid=accounts.others()[-1], **modes)

    assert accounts.read_line(second) == "a b"
    assert [accounts.end(each) for each in (first, second)] == [[], []]


def test_an_existing_database_keeps_its_mode(tmp_path):
    file = tmp_path / "alerts.db"
    file.touch()
    file.chmod(0o644)
    vd.Registry(f"sqlite:///{file}").close()

    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_database_in_read_only_mode_is_not_created(tmp_path):
    with pytest.raises(vd.RegistryError):
        vd.Registry(f"sqlite:///file:{tmp_path}/alerts.db?mode=ro&uri=true", retry_seconds=0)
    assert not list(tmp_path.iterdir())


def test_by_default_snapshots_are_in_the_directory_of_this_account(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    place = place_of(None, None)

    assert place == str(tmp_path / f"vedette-{os.geteuid()}" / "bases")
    assert set(modes_in(tmp_path).values()) == {0o700}
    monkeypatch.setattr(snapshot_files, "settings", lambda: Settings(snapshot_dir="/mnt/shared"))
    assert place_of(None, None) == "/mnt/shared"


def test_an_unusable_temporary_directory_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    with pytest.raises(vd.FileError, match="cannot store snapshots in the temporary directory: No such file"):
        place_of(None, None)
