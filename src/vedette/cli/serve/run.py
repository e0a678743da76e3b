"""`vedette serve`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from vedette.cli.option_groups import with_groups
from vedette.cli.set_options import RegistryOption
from vedette.errors import PipelineError
from vedette.serve.limits import LIMITS, read_limits

_FILE = "sqlite:///vedette.db"


def _limit(name: str) -> Any:
    """The flag of a limit."""
    limit = LIMITS[name]
    default = f"{limit.default:g}" if limit.unit == "SHARE" else "none" if not limit.default else f"{limit.default:,}"
    default = "that of the settings" if limit.is_setting and not limit.default else default
    return typer.Option(metavar=limit.unit, help=f"Limit: {limit.of_and_none}", show_default=default)


@dataclass
class GivenLimits:
    """The limits, as flags. One that is not given is that of the settings file, or the default."""

    max_body_bytes: Annotated[int | None, _limit("max_body_bytes")] = None
    max_rows: Annotated[int | None, _limit("max_rows")] = None
    rows_per_second: Annotated[int | None, _limit("rows_per_second")] = None
    max_requests: Annotated[int | None, _limit("max_requests")] = None
    max_connections: Annotated[int | None, _limit("max_connections")] = None
    max_waiting_bytes: Annotated[int | None, _limit("max_waiting_bytes")] = None
    max_streams: Annotated[int | None, _limit("max_streams")] = None
    max_streams_per_token: Annotated[int | None, _limit("max_streams_per_token")] = None
    max_queries_per_token: Annotated[int | None, _limit("max_queries_per_token")] = None
    max_text_length: Annotated[int | None, _limit("max_text_length")] = None
    max_terms: Annotated[int | None, _limit("max_terms")] = None
    max_list_values: Annotated[int | None, _limit("max_list_values")] = None
    max_nesting: Annotated[int | None, _limit("max_nesting")] = None
    max_boxes: Annotated[int | None, _limit("max_boxes")] = None
    max_polygon_vertices: Annotated[int | None, _limit("max_polygon_vertices")] = None
    max_residual_cost: Annotated[int | None, _limit("max_residual_cost")] = None
    max_match_share: Annotated[float | None, _limit("max_match_share")] = None

    def read(self) -> dict[str, Any]:
        """Those of the settings file, overridden by those that are given."""
        from vedette.settings import settings

        given = {name: value for name, value in asdict(self).items() if value is not None}
        return read_limits(settings().serve) | given


@with_groups
def run_server(
    ctx: typer.Context,
    registry: RegistryOption = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; others than 127.0.0.1 need tokens")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="Port to listen on")] = 8080,
    state: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of monitors", show_default="beside the SQLite file"),
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Acknowledge rows once they are on the disk, so that power loss loses none")
    ] = False,
    keep_events: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Events of a set that are kept for clients that resume")
    ] = 100_000,
    *,
    limits: GivenLimits,
    tiles: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="Tile server of the console's map, such as https://tile.example.com/{z}/{x}/{y}.png",
            show_default="an outline of the land",
        ),
    ] = "",
    allow_addresses: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-address", metavar="NETWORK", help="Network that webhooks may be sent to although it is not public"
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a market and a fleet that move, from a registry of its own")
    ] = False,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log a line for each request")] = False,
    open_: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open the console in a browser", show_default="where there is a desktop"),
    ] = None,
) -> None:
    """Serve the sets of a registry over HTTP: queries, matching, border monitoring and a console, without Spark.

    The console is a page in the browser, whose address is printed. Without --registry, the registry is vedette.db in
    the working directory. The log is JSON lines on standard error. SIGTERM stops the service after its requests are
    finished and its states are written.
    """
    if ctx.invoked_subcommand is not None:
        return
    given = {**ctx.params, "allow_addresses": tuple(allow_addresses or ())}
    from vedette.cli.set_options import open_registry
    from vedette.extras import check_extra
    from vedette.settings import settings

    check_extra("serve", "vedette serve")
    from vedette.serve.logs import configure_logs
    from vedette.serve.options import ServeOptions
    from vedette.serve.page_headers import host_of_tiles
    from vedette.serve.server import serve

    if tiles:
        host_of_tiles(tiles)
    show = partial(_show, in_browser=_has_desktop() if open_ is None else open_)
    names = given.keys() - LIMITS
    options: dict[str, Any] = {each.name: given[each.name] for each in fields(ServeOptions) if each.name in names}
    options |= limits.read()
    if demo:
        _check_alone(registry, state)
        _run_demo(options, show, log_requests)
        return
    opened = open_registry(registry or settings().registry or _FILE, create=True)
    configure_logs("info", requests=log_requests)
    file = opened.database.file
    options["state"] = state or (Path("vedette-serve") if file is None else file.with_name(f"{file.name}.serve"))
    serve(opened, ServeOptions(**options), show)


def _check_alone(registry: str | None, state: Path | None) -> None:
    """Raise PipelineError if the demo is told where to keep something."""
    for option, value in (("registry", registry), ("state", state)):
        if value is not None:
            raise PipelineError(
                "cannot be used with --demo, which has a registry and a state of its own", option=option
            )


def _run_demo(options: dict[str, Any], show: Callable[[str], None], log_requests: bool) -> None:
    """Serve the sets of the demo, and send rows to them. Everything is removed at the end."""
    from vedette.cli.set_options import open_registry
    from vedette.serve.demo.demo import open_demo
    from vedette.serve.logs import configure_logs
    from vedette.serve.options import ServeOptions
    from vedette.serve.server import serve

    typer.echo("demo: making a market with 6,000 alerts, a fleet with 4,000 zones, and vessels; stop it with Ctrl+C")
    configure_logs("warning", requests=log_requests)
    with open_demo() as demo:
        opened = open_registry(demo.registry, create=True)
        demo.fill(opened)

        def begin(address: str) -> None:
            demo.start(address)
            show(address)

        try:
            serve(opened, ServeOptions(**{**options, "state": demo.state}), begin)
        finally:
            opened.close()


def _show(address: str, *, in_browser: bool) -> None:
    """Print the address of the console, and open it."""
    typer.echo(f"console: {address}")
    if in_browser:
        import webbrowser

        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()


def _has_desktop() -> bool:
    """Whether a person sits at this machine: a terminal, and a screen that belongs to it."""
    if os.environ.get("CI") or os.environ.get("SSH_CONNECTION") or not sys.stdout.isatty():
        return False
    return sys.platform == "darwin" or any(os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY"))
