"""The environment of a result: commit, processor, memory and versions, but not the name of the machine."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = (
    "numpy", "numba", "pyarrow", "pyspark", "sqlglot", "duckdb", "polars", "ncls", "superintervals", "shapely", "rtree"
)  # fmt: skip


@functools.cache
def describe_machine() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": _memory_gib(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES if _is_installed(name)},
    }


def describe_commit() -> str:
    """The short commit, with a plus sign if the code of package or benchmarks differs; "unknown" outside a checkout."""
    root = Path(__file__).parent
    try:
        commit = _git(root, "rev-parse", "--short=12", "HEAD")
        return commit + ("+" if _git(root, "status", "--porcelain", "--", "../src", "*.py") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.machine()


def _memory_gib() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError):
        return None


def _is_installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
