"""Peers: other tools that can find which boxes contain which rows, one adapter file each.

A peer is built over the boxes, then loads rows in the form that suits it best; neither is timed. Only `match` is timed.
Its result is in the peer's own form; `answer` converts it to pairs outside the timing. `border` has peers that find
which boxes a key enters and leaves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from benchmarks.answers import Answer, AnswerInParts
from benchmarks.workloads import Workload


class Peer(ABC):
    """One tool in one formulation. `note` is shown in the table."""

    name: ClassVar[str]
    note: ClassVar[str] = ""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload

    @abstractmethod
    def load(self, rows: Workload) -> None:
        """Load the rows of this workload, whose queries are those of the constructor."""

    def reset(self) -> None:  # noqa: B027  most keep nothing
        """Discard the results of a match, before the next one."""

    @abstractmethod
    def match(self) -> Any:
        """The timed part."""

    @abstractmethod
    def answer(self, result: Any) -> Answer | AnswerInParts:
        """The result of `match` as pairs of row and query, both numbered as in the workload."""

    def close(self) -> None:  # noqa: B027  most have nothing to free
        """Free the resources of the peer."""
