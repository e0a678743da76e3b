"""How a moving join is answered, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vedette.errors import count
from vedette.operators.moving_join.moving_set import MovingSet

if TYPE_CHECKING:
    from vedette.operators.moving_join.moving_join import MovingJoin

FEW_PAIRS = 1000  # of fewer, the room for more is most


def explain(moving: MovingJoin) -> str:
    """What is held, in which structure, what it takes, and how far ahead it is looked."""
    join, interval = moving.join, f"{moving.max_update_interval:g}"
    if join is None:
        return f"no objects yet; each is to update at least every {interval}"
    n_pairs = moving.n_pairs  # which finds them, where a state was loaded
    sides = "rectangles" if join.a.n_dims == 2 else "boxes"
    lines = [
        f"{count(moving.n_a, 'object')} in a and {count(moving.n_b, 'object')} in b at time {join.now:g}, {sides} in "
        f"{join.a.n_dims} dimensions; {moving.nbytes / 1e6:,.1f} MB"
    ]
    lines += [f"  {name}: {_describe_grid(of)}" for name, of in zip("ab", join.sets, strict=True)]
    n_bytes = join.pair_nbytes
    each = f"{n_bytes / n_pairs:,.0f} bytes a pair" if n_pairs >= FEW_PAIRS else f"{n_bytes:,} bytes"
    lines.append(
        f"  {count(n_pairs, 'pair')} that meet now or later, in slices of time by when they begin, {each} with room "
        f"for more"
    )
    then = "leaves the result" if moving.expire_overdue else "keeps its last motion and is overdue"
    lines.append(f"  an update is looked at for {interval} and a pair until the earlier end; who misses it {then}")
    if moving.static is not None:
        lines.append(f"  the objects of {moving.static} stand: they need not update, and are never overdue")
    return "\n".join(lines)


def _describe_grid(of: MovingSet) -> str:
    grid = of.grid
    if not len(of):
        return "nothing to look up"
    if grid is None:
        return f"{count(len(of), 'object')}; a grid is made when they are looked up"
    along = " x ".join(f"{n:,}" for n in grid.shape[:2].tolist())
    return (
        f"a grid of {along} cells over the boxes that objects sweep until they must update; an update of the other set "
        f"reads the cells that it sweeps itself"
    )
