"""Which dead letters a command is about."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vedette.errors import PipelineError, nearest

if TYPE_CHECKING:
    from vedette.delivery.dead_letters import DeadLetters, Letter
    from vedette.delivery.options import WebhookOptions


@dataclass(frozen=True)
class Found:
    """Letters at one place. `options` are those of the pipeline's sink that wrote them, if a pipeline file is given."""

    place: DeadLetters
    letters: list[Letter]
    options: WebhookOptions | None


@dataclass(frozen=True)
class Choice:
    """The place of dead letters, and which of them."""

    place: Annotated[
        str,
        typer.Argument(
            metavar="PLACE", help="A folder, the URL of a registry, or a pipeline file (.toml)", show_default=False
        ),
    ]
    source: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only letters of this source, such as pipeline:sink")
    ] = None
    group: Annotated[str | None, typer.Option(metavar="TEXT", help="Only events of this group")] = None
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only letters of this kind: event or row")] = None
    ids: Annotated[
        list[str] | None, typer.Option("--id", metavar="ID", help="Only the letter with this id; repeat for each")
    ] = None

    @property
    def is_limited(self) -> bool:
        return any((self.source, self.group, self.kind, self.ids))

    def find(self) -> list[Found]:
        """The chosen letters, by place and by the options to send them with."""
        from vedette.delivery.dead_letters import KINDS, open_letters
        from vedette.delivery.redelivery import choose

        if self.kind is not None and self.kind not in KINDS:
            raise PipelineError(
                f"--kind must be one of: {', '.join(KINDS)}; got {self.kind!r}{nearest(self.kind, KINDS)}"
            )
        found = []
        for address, source, options in self._places():
            place = open_letters(address)
            of_source = choose(place.read(), source=source)
            letters = choose(of_source, kind=self.kind, source=self.source, group=self.group, ids=self.ids or ())
            found.append(Found(place, letters, options))
        return found

    def _places(self) -> list[tuple[str, str | None, WebhookOptions | None]]:
        """Each place, with the source and the options of a pipeline's sink."""
        if not self.place.endswith(".toml"):
            if not self.place.partition("://")[1] and not Path(self.place).is_dir():
                raise PipelineError(f"there is no folder {self.place!r}; give a folder, a registry or a pipeline file")
            return [(self.place, None, None)]
        from vedette.pipeline.file import ReadFile

        plan = ReadFile.read(Path(self.place)).plan
        sinks = {sink.name: None if sink.webhook is None else sink.webhook.sending() for sink in plan.sink}
        sources = {f"sources.{stream}" if stream else "source": None for stream in plan.streams}
        parts = {**sources, **sinks}
        return [(plan.dead_letter_place, f"{plan.name}:{name}", options) for name, options in parts.items()]
