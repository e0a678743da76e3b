"""`vedette`: all commands. Each has a file of its own, named like the command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from vedette.cli.backtest import backtest
from vedette.cli.border import border
from vedette.cli.command import new_group
from vedette.cli.dead_letters import dead_letters_app
from vedette.cli.demo import demo
from vedette.cli.explain import explain
from vedette.cli.init import init
from vedette.cli.join import join
from vedette.cli.match import match
from vedette.cli.moving import moving
from vedette.cli.query import query_app
from vedette.cli.registry import registry_app
from vedette.cli.run import run
from vedette.cli.serve import serve_app
from vedette.cli.set import set_app
from vedette.cli.state import state_app
from vedette.cli.warm import warm

_COMMANDS: dict[str, Callable[..., Any]] = {
    "match": match,
    "border": border,
    "join": join,
    "moving": moving,
    "backtest": backtest,
    "run": run,
    "init": init,
    "explain": explain,
    "demo": demo,
    "warm": warm,
}
app = new_group(
    "vedette",
    "Very many queries over data streams, in Python or inside a Spark pipeline.",
    _COMMANDS,
    add_completion=True,
    pretty_exceptions_enable=False,
)
for group in (serve_app, query_app, set_app, registry_app, state_app, dead_letters_app):
    app.add_typer(group)


def _print_version(wanted: bool) -> None:
    if wanted:
        from vedette import __version__

        print(f"vedette {__version__}")
        raise typer.Exit


@app.callback()
def vedette(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit")
    ] = False,
) -> None:
    pass
