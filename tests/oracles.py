"""Plain answers that are plainly right. They share no code with the package."""

from __future__ import annotations


def match_boxes(firsts, lasts, ids, cells):
    """For each row the sorted ids of the boxes that hold it; `firsts[axis][box]`, `cells[axis][row]`, closed ranges."""
    n_axes, n_rows = len(cells), len(cells[0])
    return [
        sorted(
            int(ids[box])
            for box in range(len(ids))
            if all(firsts[axis][box] <= cells[axis][row] <= lasts[axis][box] for axis in range(n_axes))
        )
        for row in range(n_rows)
    ]
