"""The table of kinds of query sets. The registry, pipeline files, Spark and the CLI read it.

To add an operator with its own query sets, write its folder and its transform, and add a row to `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from vedette.errors import RegistryError, nearest, shown
from vedette.registry.forms import BAND, TEXT, WINDOWED_TEXT, ZONE, Form

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo

MATCH, BORDER, WINDOW_JOIN, BAND_JOIN, MOVING_JOIN = "match", "border", "window join", "band join", "moving join"


@dataclass(frozen=True)
class Kind:
    """One kind of query set."""

    name: str
    set_class: tuple[str, str]  # module and name; imported when first used
    make: Callable[[Any, SetInfo], Any]  # makes an empty set from its class and its row in the registry
    form: Form  # how a query is written
    schemas: Literal["one", "streams", "none"]  # one schema, one per stream, or no schema
    operators: tuple[str, ...]  # the operators that can use such a set
    keeps_removed: bool = False  # the state of pipelines refers to removed queries

    @property
    def has_samples(self) -> bool:
        """Whether new queries can be tested on a sample of rows."""
        return self.schemas == "one"

    def load_class(self) -> Any:
        """The class of the sets, imported on the first call."""
        module, name = self.set_class
        return getattr(import_module(module), name)


def _make_query_set(set_class: Any, info: SetInfo) -> Any:
    return set_class(info.schema[""], time_zone=info.time_zone)


def _make_joins(set_class: Any, info: SetInfo) -> Any:
    return set_class(time_zone=info.time_zone, **info.schema)


def _make_bands(set_class: Any, info: SetInfo) -> Any:
    return set_class()


def _make_zones(set_class: Any, info: SetInfo) -> Any:
    return set_class(info.dimensions)


_QUERY_SET = ("vedette.queries.query_set", "QuerySet")
_JOINS = ("vedette.operators.window_join.query_set", "JoinQuerySet")
_BANDS = ("vedette.operators.band_join.query_set", "BandQuerySet")
_ZONES = ("vedette.operators.moving_join.zone_set", "ZoneSet")

KINDS = {
    kind.name: kind
    for kind in (
        Kind(MATCH, _QUERY_SET, _make_query_set, TEXT, "one", (MATCH,)),
        Kind(BORDER, _QUERY_SET, _make_query_set, TEXT, "one", (BORDER, MATCH), keeps_removed=True),
        Kind(WINDOW_JOIN, _JOINS, _make_joins, WINDOWED_TEXT, "streams", (WINDOW_JOIN,)),
        Kind(BAND_JOIN, _BANDS, _make_bands, BAND, "none", (BAND_JOIN,), keeps_removed=True),
        Kind(MOVING_JOIN, _ZONES, _make_zones, ZONE, "none", (MOVING_JOIN,)),
    )
}


def find_kind(name: Any) -> Kind:
    """The kind with that name. Raises RegistryError if the name is unknown."""
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise RegistryError(
            f"unknown kind of set: {shown(name)}; kinds are: {', '.join(KINDS)}{nearest(str(name), KINDS)}"
        )
    return kind


def kinds_for(operator: str) -> Sequence[Kind]:
    """The kinds that an operator can use, its own kind first."""
    return sorted(
        (kind for kind in KINDS.values() if operator in kind.operators), key=lambda kind: kind.name != operator
    )
