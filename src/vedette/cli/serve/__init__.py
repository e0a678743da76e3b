"""`vedette serve`: an HTTP service over a registry; `vedette serve token`: who may use it."""

from __future__ import annotations

from typing import Any

from vedette.cli.command import Commands, join_lines, new_group, printing_errors
from vedette.cli.serve.dashboard import dashboard
from vedette.cli.serve.run import run_server
from vedette.cli.serve.token import token_app

_HELP = join_lines(run_server.__doc__)


class ServeCommands(Commands):
    """A group that is also a command: without a subcommand it runs the service."""

    def invoke(self, ctx: Any) -> Any:
        with printing_errors(self):
            return super().invoke(ctx)


serve_app = new_group("serve", _HELP, {"dashboard": dashboard}, cls=ServeCommands, no_args_is_help=False)
serve_app.callback(invoke_without_command=True)(run_server)
serve_app.add_typer(token_app)
