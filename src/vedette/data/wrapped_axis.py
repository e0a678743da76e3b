"""What the axes of views share: their cells and cuts are those of an axis of single values."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from vedette.data.axes import Axis


class WrappedAxis:
    """An axis around another one, `inner`."""

    inner: Axis

    @property
    def n_cells(self) -> int:
        return self.inner.n_cells

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes

    @property
    def cuts(self) -> NDArray[Any]:
        return self.inner.cuts
