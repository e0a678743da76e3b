"""Values that are inserted and deleted on two sides, bands, and the expected changes of a band join."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import vedette as vd

BANDS = {f"q{number}": (low, low + width) for number, (low, width) in enumerate([(-2, 1), (0, 0), (0.5, 3), (-9, 4)])}


def make_bands(bands=BANDS):
    made = vd.BandQuerySet()
    for name, (low, high) in bands.items():
        made.add(name, low, high)
    return made


def make_batches(n_batches, n_rows, seed, with_ops=True, shrink=0):
    """Rows (id, value, op) of each micro-batch, with few ids, so that they repeat; known ids are never inserted.

    Each micro-batch has `shrink` rows less than the previous one.
    """
    random = np.random.default_rng(seed)
    there, batches = set(), []
    for number in range(n_batches):
        rows = []
        for row in range(n_rows - number * shrink):
            if not with_ops:
                rows.append((number * n_rows + row, float(random.integers(0, 40)) / 2, "insert"))
                continue
            id_ = int(random.integers(0, 2 * n_rows))
            is_gone = id_ in there or random.random() < 0.2  # some deletions are of unknown ids
            rows.append(
                (id_, None if is_gone else float(random.integers(0, 40)) / 2, "delete" if is_gone else "insert")
            )
            there = there - {id_} if is_gone else there | {id_}
        batches.append(rows)
    return batches


def to_table(rows, id_type=None):
    ids, values, ops = zip(*rows, strict=True) if rows else ([], [], [])
    ids = pa.array(ids, pa.int64()).cast(id_type or pa.int64())
    return pa.table([ids, pa.array(values, pa.float64()), pa.array(ops, pa.string())], names=["id", "value", "op"])


class Join:
    """A band join by plain comparison of all pairs: the net change of each micro-batch."""

    def __init__(self, bands=BANDS):
        self.bands, self.sides = bands, ({}, {})

    def step(self, *batches):
        """The changes (sign, query, left, right) of one micro-batch with these rows per side."""
        before = [dict(side) for side in self.sides]
        for side, rows in zip(self.sides, batches, strict=True):
            for id_, value, op in rows:
                if op == "insert":
                    side[id_] = value
                else:
                    side.pop(id_, None)
        gone, come = (
            [{id_ for id_, value in old[n].items() if new[n].get(id_) != value} for n in (0, 1)]
            for old, new in ((before, self.sides), (self.sides, before))
        )
        return [*self._pairs(-1, before, gone), *self._pairs(1, self.sides, come)]

    def _pairs(self, sign, sides, changed):
        return [
            (sign, query, left, right)
            for left, r in sides[0].items()
            for right, s in sides[1].items()
            if left in changed[0] or right in changed[1]
            for query, (low, high) in self.bands.items()
            if low <= r - s <= high
        ]


def expected_changes(lefts, rights, bands=BANDS):
    """By micro-batch."""
    join = Join(bands)
    n_batches = max(len(lefts), len(rights))
    padded = [side + [[]] * (n_batches - len(side)) for side in (lefts, rights)]
    return [join.step(*batches) for batches in zip(*padded, strict=True)]


def as_tuples(changes):
    return sorted(tuple(row) for row in changes.select("sign", "query", "left", "right").collect())
