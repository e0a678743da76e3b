"""The papers' claims, figure by figure, and whether each holds here: one sentence each, derived from the results."""

from __future__ import annotations

from benchmarks.claims import bands, border, moving, spatial_join, virtual_constructs
from benchmarks.claims.claim import Claim, Figure, Finding, Row

# By paper, in the order of the pages.
PAPERS: dict[str, list[Claim]] = {
    "virtual-constructs": virtual_constructs.CLAIMS,
    "spatial-join": spatial_join.CLAIMS,
    "border": border.CLAIMS,
    "bands": bands.CLAIMS,
    "moving": moving.CLAIMS,
}
CLAIMS: dict[str, Claim] = {claim.target: claim for claims in PAPERS.values() for claim in claims}


def judge(target: str, rows: list[Row]) -> Finding | None:
    """Whether the claim of this figure holds by these results; None without results."""
    own = [row for row in rows if row["target"] == target]
    return CLAIMS[target].judge(Figure(own)) if own else None


__all__ = ["CLAIMS", "PAPERS", "Claim", "Figure", "Finding", "judge"]
