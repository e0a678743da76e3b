"""The selections of continuous joins from one stream, as boxes of cells: one per selection, with one axis per field."""

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
class SelectionBoxes:
    """Selection `s` is the closed cell ranges `firsts[field, s]` to `lasts[field, s]`, if it `exists`."""

    axes: dict[str, Axis]
    firsts: NDArray[np.int32]  # (fields, selections)
    lasts: NDArray[np.int32]
    exists: NDArray[np.bool_]  # it is not empty

    @classmethod
    def of(cls, boxes: StreamBoxes) -> SelectionBoxes:
        axes = {}
        for name, type_ in boxes.types.items():
            ranges = [block.ranges[name] for block in boxes.blocks if name in block.ranges]
            if ranges:
                axes[name] = build_axis(type_, ranges)
        n_cells = np.array([axis.n_cells for axis in axes.values()], np.int32)
        firsts = np.zeros((len(axes), boxes.n), np.int32)
        lasts = np.repeat(n_cells[:, None] - 1, boxes.n, axis=1)  # any value, and null
        exists = np.zeros(boxes.n, np.bool_)
        for block in boxes.blocks:
            exists[block.queries] = True
            for number, (name, axis) in enumerate(axes.items()):
                if name in block.ranges:
                    firsts[number, block.queries], lasts[number, block.queries] = to_cells(axis, block.ranges[name])
        exists &= (firsts <= lasts).all(axis=0)
        return cls(axes, firsts, lasts, exists)


def active_groups(join: WindowJoin) -> list[JoinGroup]:
    """The groups with an active branch."""
    return [group for group in join.groups.values() if not group.is_removed.all()]


def find_branches(group: JoinGroup, boxes: Sequence[SelectionBoxes]) -> NDArray[np.int32]:
    """The active branches of a group whose selections of both streams are not empty."""
    assert group.branches is not None
    first, second = (each.exists[own] for each, own in zip(boxes, group.branches.selections, strict=True))
    return np.flatnonzero(~group.is_removed & first & second).astype(np.int32)
