"""`/guide`: the documents as a site, which wheels contain, and which `make docs` builds in a clone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from windrow_service.api.docs_page import protective_headers

FOLDER = Path(__file__).parents[1] / "guide"
# The types of all files that the site has; what the system knows may differ.
_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".ipynb": "application/x-ipynb+json",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
_NOT_BUILT = (
    "The guide is not part of this installation. In a clone, run `make docs` and start the "
    "coordinator again; docs/index.md is its first page.\n"
)


def add_guide(app: FastAPI, folder: Path | None = None) -> None:
    """Serve the site in a folder, by default the one of this package; it needs no token."""
    site = folder or FOLDER

    @app.get("/guide", include_in_schema=False)
    async def front() -> RedirectResponse:
        # Relative, because a proxy may serve the coordinator under a path.
        return RedirectResponse("guide/")

    @app.get("/guide/{path:path}", include_in_schema=False)
    def page(path: str) -> Response:
        files = _files(site)
        file = files.get(path or "index.html")
        if file is None:
            if not files:
                return PlainTextResponse(_NOT_BUILT, status_code=404)
            raise HTTPException(404)
        if file.suffix == ".html":
            return _page(file)
        return FileResponse(file, media_type=_TYPES.get(file.suffix, "application/octet-stream"))


@cache
def _files(site: Path) -> Mapping[str, Path]:
    """Return the files of the site by path: a request can name no others."""
    return {path.relative_to(site).as_posix(): path for path in site.rglob("*") if path.is_file()}


@cache
def _page(file: Path) -> HTMLResponse:
    content = file.read_bytes()
    return HTMLResponse(content, headers=protective_headers(content))
