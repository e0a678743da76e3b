"""Reads what a Spark stream has written into a folder of Parquet files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def read_committed(folder: Path) -> list[dict[str, Any]]:
    """The rows of the files in Spark's own list; a killed stream also leaves incomplete files."""
    names = set()
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        names |= {json.loads(line)["path"].rpartition("/")[2] for line in log.read_text().splitlines()[1:]}
    return [row for name in sorted(names) for row in pq.read_table(folder / name).to_pylist()]
