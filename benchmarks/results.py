"""Results on disk: one file of JSON rows per experiment, each row with its time, commit and machine.

`seconds.json` has the time of the last run of each experiment.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_commit, describe_machine

FOLDER = Path(__file__).parent / "results"


def write(experiment: str, rows: list[dict[str, Any]], quick: bool) -> None:
    """Replace the experiment's results."""
    folder = _folder(quick)
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    about = {
        "date": now.strftime("%Y-%m-%d"),
        "time": now.strftime("%H:%M:%S"),
        "commit": describe_commit(),
        "machine": describe_machine(),
    }
    lines = [json.dumps(_rounded(row) | about) for row in rows]
    (folder / f"{experiment}.jsonl").write_text("\n".join(lines) + "\n")


def read(quick: bool) -> list[dict[str, Any]]:
    """All rows of all experiments."""
    files = sorted(_folder(quick).glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def keep_seconds(experiment: str, seconds: float, quick: bool) -> None:
    """Save how long an experiment took."""
    known = read_seconds(quick) | {experiment: round(seconds, 1)}
    text = json.dumps(dict(sorted(known.items())), indent=1)
    (_folder(quick) / "seconds.json").write_text(text + "\n")


def read_seconds(quick: bool) -> dict[str, float]:
    """How long each experiment took in its last run."""
    file = _folder(quick) / "seconds.json"
    known: dict[str, float] = json.loads(file.read_text()) if file.exists() else {}
    return known


def _folder(quick: bool) -> Path:
    return FOLDER / "quick" if quick else FOLDER


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers to five digits; more would be noise."""
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in row.items()}
