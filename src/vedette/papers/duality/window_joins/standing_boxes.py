"""What standing joins select from one stream, as boxes in cells: one a selection, on an axis for each field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vedette.data.axes import Axis, build_axis, to_cells
from vedette.operators.window_join.group import JoinGroup
from vedette.operators.window_join.join import WindowJoin
from vedette.operators.window_join.stream_selections import StreamBoxes


@dataclass(frozen=True)
class StandingBoxes:
    """Selection `s` is the closed cell ranges `firsts[field, s]` to `lasts[field, s]`, where it `is_there`."""

    axes: dict[str, Axis]
    firsts: NDArray[np.int32]  # (fields, selections)
    lasts: NDArray[np.int32]
    is_there: NDArray[np.bool_]  # it holds something

    @classmethod
    def of(cls, boxes: StreamBoxes) -> StandingBoxes:
        axes = {}
        for name, type_ in boxes.types.items():
            ranges = [block.ranges[name] for block in boxes.blocks if name in block.ranges]
            if ranges:
                axes[name] = build_axis(type_, ranges)
        n_cells = np.array([axis.n_cells for axis in axes.values()], np.int32)
        firsts = np.zeros((len(axes), boxes.n), np.int32)
        lasts = np.repeat(n_cells[:, None] - 1, boxes.n, axis=1)  # any value, and null
        is_there = np.zeros(boxes.n, np.bool_)
        for block in boxes.blocks:
            is_there[block.queries] = True
            for number, (name, axis) in enumerate(axes.items()):
                if name in block.ranges:
                    firsts[number, block.queries], lasts[number, block.queries] = to_cells(axis, block.ranges[name])
        is_there &= (firsts <= lasts).all(axis=0)
        return cls(axes, firsts, lasts, is_there)


def standing_groups(join: WindowJoin) -> list[JoinGroup]:
    """The groups of which a branch stands."""
    return [group for group in join.groups.values() if not group.is_removed.all()]


def find_there(group: JoinGroup, boxes: Sequence[StandingBoxes]) -> NDArray[np.int32]:
    """The branches of a group that stand, and select something of both streams."""
    assert group.branches is not None
    first, second = (each.is_there[own] for each, own in zip(boxes, group.branches.selections, strict=True))
    return np.flatnonzero(~group.is_removed & first & second).astype(np.int32)
