"""What `vedette state show` prints about a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vedette.errors import SnapshotError
from vedette.spark.checkpoints.state import CheckpointState
from vedette.spark.session import session
from vedette.spark.shards.layout import Layout


@dataclass(frozen=True)
class Description:
    """The shards of a stream's state, each with its share of the rows."""

    operator: str
    n_shards: int
    n_partitions: int
    batch: int
    shards: list[dict[str, Any]]  # those with state

    @property
    def n_rows(self) -> int:
        return sum(shard["rows"] for shard in self.shards)

    @property
    def n_bytes(self) -> int:
        return sum(shard["bytes"] for shard in self.shards)

    @property
    def skew(self) -> float:
        """The largest of all shards."""
        return float(max(shard["skew"] for shard in self.shards))

    def to_record(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "batch": self.batch,
            "partitions": self.n_partitions,
            "shards": self.n_shards,
            "rows": self.n_rows,
            "bytes": self.n_bytes,
            "skew": self.skew,
            "by_shard": self.shards,
        }


def describe(checkpoint: str) -> Description:
    """The shards of a checkpoint. Raises SnapshotError if it has none."""
    state = CheckpointState.find(session("vedette state show", log_level="OFF"), checkpoint)
    facts = state.facts()
    if facts is None:
        raise SnapshotError(f"the checkpoint {checkpoint} has no shard with state")
    shards = state.describe()
    mean = sum(shard["rows"] for shard in shards) / len(Layout.of(facts).labels)
    shards = [shard | {"skew": round(shard["rows"] / mean, 2) if mean else 0.0} for shard in shards]
    return Description(facts["operator"], facts["shards"], state.n_partitions, state.batch, shards)
