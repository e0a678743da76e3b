"""A table of names whose values are imported when first used.

A layer uses it to list modules of a higher layer by name without importing them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any


class LazyTable(Mapping[str, Any]):
    """Values by name. `homes` gives the module of each value and its name there.

    >>> table = LazyTable({"pi": ("math", "pi")})
    >>> list(table), table["pi"]
    (['pi'], 3.141592653589793)
    """

    def __init__(self, homes: Mapping[str, tuple[str, str]]) -> None:
        self._homes = dict(homes)

    def __getitem__(self, name: str) -> Any:
        module, attribute = self._homes[name]
        return getattr(import_module(module), attribute)

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)
