"""Work that other processes do on a registry during a test."""

from __future__ import annotations

import itertools
import time
from multiprocessing.synchronize import Barrier
from typing import Any

import vedette as vd

vd.QuerySet("price double").check("price < 1")  # imports the parser once, before processes are forked


def add_pairs(url: str, writer: int, n: int) -> list[int]:
    """Add pairs of queries, each pair in one change, and sometimes remove one; returns the created versions."""
    registry = vd.Registry(url, retry_seconds=200)
    made = []
    for i in range(n):
        made.append(registry.add_many("alerts", [f"{writer}-{i}-left", f"{writer}-{i}-right"], ["price < 1"] * 2))
        if i % 3 == 2:
            made.append(registry.remove_many("alerts", [f"{writer}-{i - 1}-left", f"{writer}-{i - 1}-right"]))
    registry.close()
    return made


_gates: list[Barrier] = []


def meet_at(gate: Barrier) -> None:
    """Make the first reader of this process wait until the others have read too."""
    _gates.append(gate)


def count_up(url: str, n: int) -> int:
    """Replace one query n times by the next number, while others do the same; returns the number of conflicts."""
    registry = vd.Registry(url, retry_seconds=200)
    n_late = 0
    for _ in range(n):
        while True:
            # If the text and the version are from different states, the change is refused.
            version = registry.set("alerts").version
            number = int(str(registry.get("alerts", "counter").text).rpartition(" ")[2])
            if _gates:
                _gates.pop().wait(300)
            try:
                registry.replace("alerts", "counter", f"price < {number + 1}", expect_version=version)
                break
            except vd.ConflictError:
                n_late += 1
    registry.close()
    return n_late


def add_for_ever(url: str, size: int) -> None:
    """Add batches until killed."""
    registry = vd.Registry(url, retry_seconds=200)
    for i in itertools.count():
        registry.add_many("alerts", [f"{i}-{j}" for j in range(size)], ["price < 1"] * size)


def open_at(url: str, moment: float) -> Any:
    """Open a registry at the same time as other processes."""
    time.sleep(max(0.0, moment - time.time()))
    registry = vd.Registry(url, retry_seconds=200)
    names = [each.name for each in registry.sets()]
    registry.close()
    return names
