"""The region that a moving rectangle sweeps: the probability that a query meets a node, and so the cost of a node.

Tao, Papadias and Sun, "The TPR*-tree" (2003), section 3; section 7.2.1 of Zhang et al. A query meets a node if and only
if the node, widened by the query's sides, sweeps over the query's centre. A box has rows of lows, highs, low speeds and
high speeds, at the start of the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vedette.native.kernels import kernel

LOW, HIGH, LOW_SPEED, HIGH_SPEED = 0, 1, 2, 3


@kernel
def measure_swept(box: NDArray[np.float64], sides: NDArray[np.float64], duration: float) -> float:
    """The area or volume that the box, widened by the sides, covers at some time within the duration.

    A side that moves outwards adds its speed times the area of its face, which was not covered before. The face is a
    product of at most three linear functions of time, which Simpson's rule integrates exactly.
    """
    n_dims = box.shape[1]
    total, rate = 1.0, 0.0
    for i in range(n_dims):
        total *= max(0.0, box[HIGH, i] - box[LOW, i] + sides[i])
        outward = max(0.0, box[HIGH_SPEED, i]) + max(0.0, -box[LOW_SPEED, i])
        if outward > 0.0:
            first = middle = last = 1.0
            for j in range(n_dims):
                if j != i:
                    side = box[HIGH, j] - box[LOW, j] + sides[j]
                    growth = (box[HIGH_SPEED, j] - box[LOW_SPEED, j]) * duration
                    first *= max(0.0, side)
                    middle *= max(0.0, side + 0.5 * growth)
                    last *= max(0.0, side + growth)
            rate += outward * (first + 4.0 * middle + last) / 6.0
    return total + rate * duration


@kernel
def clear_box(box: NDArray[np.float64]) -> None:
    """Make the box empty, so that others can be added to it."""
    box[LOW], box[HIGH], box[LOW_SPEED], box[HIGH_SPEED] = np.inf, -np.inf, np.inf, -np.inf


@kernel
def extend_box(box: NDArray[np.float64], other: NDArray[np.float64]) -> None:
    """Extend the box so that it contains the other one."""
    for d in range(box.shape[1]):
        box[LOW, d] = min(box[LOW, d], other[LOW, d])
        box[HIGH, d] = max(box[HIGH, d], other[HIGH, d])
        box[LOW_SPEED, d] = min(box[LOW_SPEED, d], other[LOW_SPEED, d])
        box[HIGH_SPEED, d] = max(box[HIGH_SPEED, d], other[HIGH_SPEED, d])
