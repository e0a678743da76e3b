"""Moving objects of two sets, the changes that one moving join emits, and the expected pairs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

import vedette as vd

INTERVAL = 6.0
MOMENTS = (0.0, 1.75, 3.0)
NUMBERS = pa.int64()
LINE = ["sign", "a", "b", "start", "end"]


def side_names(n_dims):
    return [each.format(axis) for axis in "xyz"[:n_dims] for each in ("{}_low", "{}_high", "v{}_low", "v{}_high")]


def make_rows(n_times, n_rows, seed, n_ids=8, n_dims=2, spacing=1.0):
    """Rows (id, time, sides or None for a removal) in the order of times, with a number of rows per time.

    There are few distinct numbers, so that sides touch and speeds are equal.
    """
    random = np.random.default_rng(seed)
    rows = []
    for time in range(n_times):
        for id_ in random.integers(0, n_ids, n_rows).tolist():
            sides = []
            for _ in range(n_dims):
                low, size = int(random.integers(-5, 6)), int(random.integers(0, 5))
                speed, growth = float(random.choice([-2, -1, 0, 0, 0.5, 1])), float(random.choice([0, 0, 0, -0.5, 1]))
                sides.append((float(low), float(low + size), speed, speed + growth))
            rows.append((id_, time * spacing, None if random.random() < 0.1 else tuple(sides)))
    return rows


def to_table(rows, n_dims=2, ids=NUMBERS):
    names = side_names(n_dims)
    numbers = [[None] * len(names) if sides is None else [x for side in sides for x in side] for *_, sides in rows]
    columns = {
        "id": pa.array([id_ for id_, *_ in rows], pa.int64()).cast(ids),
        "time": pa.array([time for _, time, _ in rows], pa.float64()),
        "removed": pa.array([sides is None for *_, sides in rows], pa.bool_()),
    }
    return pa.table(
        columns | {name: pa.array([row[k] for row in numbers], pa.float64()) for k, name in enumerate(names)}
    )


def cut(rows, n_batches):
    """Micro-batches of whole times."""
    times = np.array_split(sorted({time for _, time, _ in rows}), n_batches)
    return [[row for row in rows if row[1] in set(part.tolist())] for part in times]


def tell(a_rows, b_rows, n_dims=2, **options):
    """The changes of one join in this process, with all rows in the order of their times, one step per time."""
    moving = vd.MovingJoin(INTERVAL, **options)
    lines = []
    for time in sorted({time for _, time, _ in (*a_rows, *b_rows)}):
        at = [to_table([row for row in rows if row[1] == time], n_dims).drop(["time"]) for rows in (a_rows, b_rows)]
        changes = as_lines(moving.update(*at, time=time).to_pylist())
        assert len({line[1:] for line in changes}) == len(changes)  # nothing is retracted and emitted again
        lines += changes
    return sorted(lines)


def tell_batches(batches, **options):
    """The changes of one join in this process, with micro-batches of rows of both sets."""
    moving = vd.MovingJoin(INTERVAL, **options)
    changes = [moving.update(*map(to_table, sets)) for sets in batches if any(sets)]
    return sorted(line for table in changes for line in as_lines(table.to_pylist()))


def as_lines(rows):
    return sorted(tuple(row[name] for name in LINE) for row in rows)


def make_world(*batches, late="apply", expire_overdue=False, static=None):
    """What is in force when, after micro-batches of rows of both sets, and the time that has come.

    A row from before the time that has come counts from then on, if it is news.
    """
    from oracles_moving import World  # here, because a pipeline in a separate process cannot import it

    world, latest, clock = World(INTERVAL, expire_overdue, static), {}, -np.inf
    for sets in batches:
        for of, rows in zip("ab", sets, strict=True):
            for id_, time, sides in sorted(rows, key=lambda row: row[1]):
                is_silent = sides is not None and of != static and time < clock - INTERVAL
                is_old = time < latest.get((of, id_), -np.inf) or is_silent
                if time < clock and (late == "drop" or is_old):
                    continue
                latest[of, id_] = time
                world.put(of, id_, max(time, clock), None if sides is None else move(time, sides, max(time, clock)))
        clock = max([clock, *(time for rows in sets for _, time, _ in rows)])
    return world, clock


def move(time, sides, now):
    """The motion as of now, or None if the object has shrunk to nothing."""
    from oracles_moving import Motion

    moved = tuple((low + v * (now - time), high + w * (now - time), v, w) for low, high, v, w in sides)
    return None if any(low > high for low, high, *_ in moved) else Motion(now, moved)


def pairs_at(lines, time):
    """The pairs at a time, from the emitted changes; each is emitted once."""
    found = Counter()
    for sign, a, b, start, end in lines:
        if start <= time <= end:
            found[a, b] += sign
    assert set(found.values()) <= {0, 1}
    return {pair for pair, n in found.items() if n}
