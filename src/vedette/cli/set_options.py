"""Which registry and which set a command is about: what is given, else what the environment or the settings say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from vedette.errors import PipelineError, QueryError

if TYPE_CHECKING:
    from vedette.registry.read.set_info import SetInfo
    from vedette.registry.registry import Registry

_WHOLE = re.compile("0|-?[1-9][0-9]{0,18}")  # a number as it is written, and no other way

RegistryOption = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="VEDETTE_REGISTRY",
        show_envvar=False,
        help="sqlite:///file.db or postgresql://...  [default: VEDETTE_REGISTRY, or `registry` in the settings]",
    ),
]


@dataclass(frozen=True)
class ChosenSet:
    """The set that a command is about, and the registry that has it."""

    set_name: Annotated[
        str | None, typer.Option("--set", metavar="NAME", help="The query set  [default: the only one there is]")
    ] = None
    registry: RegistryOption = None

    def open(self) -> tuple[Registry, SetInfo]:
        opened = open_registry(self.registry)
        return opened, choose_set(opened, self.set_name)


def open_registry(url: str | None, *, create: bool = False) -> Registry:
    """The registry that a command is about; its tables must be there, unless the command may make them."""
    from vedette import Registry
    from vedette.settings import settings

    chosen = url or settings().registry
    if not chosen:
        raise PipelineError(
            "there is no registry; name one with --registry sqlite:///alerts.db, in VEDETTE_REGISTRY, or as `registry` "
            "in the settings file"
        )
    return Registry(chosen, create=create)


def choose_set(registry: Registry, name: str | None) -> SetInfo:
    """The set of that name, or the only one."""
    if name is not None:
        return registry.set(name)
    sets = registry.sets()
    if len(sets) == 1:
        return sets[0]
    if not sets:
        raise PipelineError("the registry has no set yet; make one: vedette set create NAME --schema '...'")
    raise PipelineError(f"the registry has several sets; name one with --set: {', '.join(info.name for info in sets)}")


def read_id(text: str, info: SetInfo) -> str | int:
    """A query's id as the set has them. A number is taken as its digits say it: 5, not 05 or +5."""
    if info.id_kind != "integer":
        return text
    if not _WHOLE.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise QueryError(
            f"the ids of set {info.name!r} are whole numbers of 64 bits, written such as 5 or -12; got {text!r}"
        )
    return int(text)
