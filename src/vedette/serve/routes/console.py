"""The files of the console: a page, its scripts and styles, and those of Leaflet, which comes as a package."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent.parent / "console"


async def show_console(request: Request) -> FileResponse:
    return FileResponse(FOLDER / "index.html", headers={"Cache-Control": "no-cache"})


class _Files(StaticFiles):
    """Files that browsers keep, and ask about before each use, so that a new version is seen at once."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response


def find_leaflet() -> Path | None:
    """The folder of Leaflet's files in the package XStatic-Leaflet. None if it is not installed."""
    try:
        listed = files("XStatic-Leaflet") or []
    except PackageNotFoundError:
        return None
    return next((Path(str(each.locate())).parent for each in listed if each.name == "leaflet.js"), None)


def console_routes() -> list[BaseRoute]:
    """The page itself, and everything it loads."""
    leaflet = find_leaflet()
    return [
        Route("/", show_console, methods=["GET"]),
        *([] if leaflet is None else [Mount("/console/leaflet", _Files(directory=leaflet))]),
        Mount("/console", _Files(directory=FOLDER)),
    ]
