"""How many cores this process may use: its CPU affinity, and the CPU quota of its container."""

from __future__ import annotations

import functools
import math
import os
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")


@functools.cache
def count_cores() -> int:
    """The number of cores, at least 1."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(n_cores, read_quota(_GROUPS, _OWN_GROUP)))


def read_quota(groups: Path, own_group: Path) -> int:
    """The cores that the quota of a control group allows, rounded up; a large number if there is none.

    A quota of an enclosing group counts, too. Reads version 2 (`cpu.max`) and version 1 (`cpu.cfs_quota_us`).
    """
    least = math.inf
    for folder in _folders(groups, own_group):
        try:
            if (folder / "cpu.max").exists():
                quota, period = (folder / "cpu.max").read_text().split()
            else:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            if quota != "max" and int(quota) > 0:
                least = min(least, int(quota) / int(period))
        except (OSError, ValueError, ZeroDivisionError):  # no such file, or of another form
            continue
    return max(1, math.ceil(least)) if least < math.inf else 1 << 16


def _folders(groups: Path, own_group: Path) -> list[Path]:
    """The folders of this process's control group and of those around it."""
    folders = [groups, groups / "cpu"]
    try:
        lines = own_group.read_text().splitlines()
    except OSError:
        return folders
    for line in lines:
        _, controllers, path = line.split(":", 2) if line.count(":") >= 2 else ("", "none", "")
        if controllers == "" or "cpu" in controllers.split(","):
            own = (groups if controllers == "" else groups / "cpu") / path.lstrip("/")
            folders += [each for each in (own, *own.parents) if each.is_relative_to(groups)]
    return list(dict.fromkeys(folders))
