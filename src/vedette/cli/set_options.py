"""The registry and the set that a command uses: from its options, else from the environment or the settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from vedette.errors import PipelineError, QueryError

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo
    from vedette.registry.registry import Registry

_WHOLE = re.compile("0|-?[1-9][0-9]{0,18}")  # a number in its usual notation

RegistryOption = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="VEDETTE_REGISTRY",
        show_envvar=False,
        help="URL of the registry: sqlite:///file.db or postgresql://...",
        show_default="VEDETTE_REGISTRY, or `registry` in the settings",
    ),
]


@dataclass(frozen=True)
class ChosenSet:
    """The set that a command uses, and its registry."""

    set_name: Annotated[
        str | None, typer.Option("--set", metavar="NAME", help="The query set", show_default="the only set")
    ] = None
    registry: RegistryOption = None

    def open(self) -> tuple[Registry, SetInfo]:
        opened = open_registry(self.registry)
        return opened, choose_set(opened, self.set_name)


def open_registry(url: str | None, *, create: bool = False) -> Registry:
    """The registry that a command uses. Its tables must exist, unless the command may create them."""
    from vedette import Registry
    from vedette.settings import settings

    chosen = url or settings().registry
    if not chosen:
        raise PipelineError(
            "no registry is given; use --registry sqlite:///alerts.db, the variable VEDETTE_REGISTRY, or `registry` "
            "in the settings file"
        )
    return Registry(chosen, create=create)


def choose_set(registry: Registry, name: str | None) -> SetInfo:
    """The set with this name, or the only set."""
    if name is not None:
        return registry.set(name)
    sets = registry.sets()
    if len(sets) == 1:
        return sets[0]
    if not sets:
        raise PipelineError("the registry has no set; create one: vedette set create NAME --schema '...'")
    raise PipelineError(
        f"the registry has several sets; choose one with --set: {', '.join(info.name for info in sets)}"
    )


def read_id(text: str, info: SetInfo) -> str | int:
    """A query's id with the type of the set's ids. A number is written in its usual notation: 5, not 05 or +5."""
    if info.id_kind != "integer":
        return text
    if not _WHOLE.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise QueryError(f"the ids of set {info.name!r} are 64-bit integers, such as 5 or -12; got {text!r}")
    return int(text)
