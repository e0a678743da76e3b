"""The cores of this process: affinity, and quotas of control groups of both versions."""

from __future__ import annotations

import os

import pytest

from vedette.native.cores import count_cores, read_quota

NO_QUOTA = 1 << 16


@pytest.fixture
def groups(tmp_path):
    """Writes files of control groups, and returns the quota that they give."""

    def read(own, **files):
        for name, content in files.items():
            path = tmp_path / "groups" / name.replace("__", "/").replace("_max", ".max").replace("cfs", "cpu.cfs")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        (tmp_path / "own").write_text(own)
        return read_quota(tmp_path / "groups", tmp_path / "own")

    return read


def test_this_process_has_between_one_core_and_those_of_the_machine():
    assert 1 <= count_cores() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [("max 100000\n", NO_QUOTA), ("200000 100000\n", 2), ("150000 100000\n", 2), ("1000 100000\n", 1)],
)
def test_a_quota_of_version_2_is_rounded_up(groups, content, expected):
    assert groups("0::/\n", cpu_max=content) == expected


def test_the_least_quota_of_the_group_and_those_around_it_counts(groups):
    files = {"pod__box__cpu_max": "max 100000", "pod__cpu_max": "300000 100000", "cpu_max": "800000 100000"}

    assert groups("0::/pod/box\n", **files) == 3


def test_a_quota_of_version_1_is_read(groups):
    files = {"cpu__box__cfs_quota_us": "250000\n", "cpu__box__cfs_period_us": "100000\n", "cpu__cfs_quota_us": "-1\n"}

    assert groups("4:memory:/box\n3:cpu,cpuacct:/box\n", **files) == 3


@pytest.mark.parametrize("own", ["", "no group", "0::/../..\n", "::::\n"])
@pytest.mark.parametrize("content", ["", "many", "0 0", "100000 0", "1 2 3"])
def test_unreadable_files_are_no_quota(groups, own, content):
    assert groups(own, cpu_max=content) == NO_QUOTA
