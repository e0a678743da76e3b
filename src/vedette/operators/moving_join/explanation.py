"""Explains in words how a moving join is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedette.errors import count
from vedette.operators.moving_join.moving_set import MovingSet

if TYPE_CHECKING:
    from vedette.operators.moving_join.moving_join import MovingJoin

FEW_PAIRS = 1000  # with fewer pairs, most of the memory is reserved


def explain(moving: MovingJoin) -> str:
    """What is stored, in which structure, its memory, and how far ahead pairs are computed."""
    join, interval = moving.join, f"{moving.max_update_interval:g}"
    if join is None:
        return f"no objects yet; each must update at least every {interval}"
    n_pairs = moving.n_pairs  # finds them if a state was loaded
    sides = "rectangles" if join.a.n_dims == 2 else "boxes"
    lines = [
        f"{count(moving.n_a, 'object')} in a and {count(moving.n_b, 'object')} in b at time {join.now:g}, {sides} in "
        f"{join.a.n_dims} dimensions; {moving.nbytes / 1e6:,.1f} MB"
    ]
    lines += [f"  {name}: {_describe_grid(of)}" for name, of in zip("ab", join.sets, strict=True)]
    n_bytes = join.pair_nbytes
    each = f"{n_bytes / n_pairs:,.0f} bytes a pair" if n_pairs >= FEW_PAIRS else f"{n_bytes:,} bytes"
    lines.append(f"  {count(n_pairs, 'pair')} now or later, in slices of time by start, {each} including free room")
    then = "leaves the result" if moving.expire_overdue else "keeps its last motion and is overdue"
    lines.append(f"  pairs of an update are computed for {interval} ahead; an object that misses its deadline {then}")
    if moving.static is not None:
        lines.append(f"  the objects of {moving.static} are static: they need not update, and are never overdue")
    return "\n".join(lines)


def _describe_grid(of: MovingSet) -> str:
    grid = of.grid
    if not len(of):
        return "no objects"
    if grid is None:
        return f"{count(len(of), 'object')}; the grid is built at the first look-up"
    along = " x ".join(f"{n:,}" for n in grid.shape[:2].tolist())
    return (
        f"a grid of {along} cells over the boxes that objects sweep until they must update; an update of the other set "
        f"reads the cells that it sweeps itself"
    )
