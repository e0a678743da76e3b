"""`vedette bench`: the benchmarks of a checkout, which an installed package does not bring along."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from vedette.errors import FileError

_NEEDED = ("duckdb", "ncls", "polars", "pytest", "rtree", "superintervals")  # by all experiments, to be imported


def run_benchmarks(words: Sequence[str]) -> int:
    """Run `python -m benchmarks` with these words where the checkout is; its exit code."""
    checkout = find_checkout()
    if words[0] != "report":
        _check_installed(checkout)
    return subprocess.run([sys.executable, "-m", "benchmarks", *words], cwd=checkout).returncode


def find_checkout() -> Path:
    """The checkout that this package is installed from, else the one that is worked in."""
    own, here = Path(__file__).parents[3], Path.cwd()
    for folder in (own, here, *here.parents):
        if (folder / "benchmarks" / "__main__.py").exists() and (folder / "src" / "vedette").is_dir():
            return folder
    raise FileError(
        f"the benchmarks are in a checkout of Vedette, and there is none at {here}; "
        "go to one, and set it up there with: make setup"
    )


def _check_installed(checkout: Path) -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise FileError(
            f"the benchmarks need packages that are not installed: {', '.join(missing)}; in {checkout} run "
            "make setup, or pip install -e '.[bench,dev]'"
        )
