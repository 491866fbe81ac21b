"""`/docs`: the API documentation, served only from this origin and never framed."""

from __future__ import annotations

import base64
import hashlib
import re

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, RedirectResponse

# Where fastapi-offline serves the scripts and styles.
_STATIC = "static-offline-docs"
# Where the dashboard serves ours.
_OURS = "dashboard/static"
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)


def add_pages(app: FastAPI) -> None:
    """Serve the documentation, and redirect the front page to it."""
    page = get_swagger_ui_html(
        # Relative to the page, because a proxy may serve the coordinator under a path.
        openapi_url="openapi.json",
        title=f"{app.title}: every call",
        swagger_js_url=f"{_STATIC}/swagger-ui-bundle.js",
        swagger_css_url=f"{_STATIC}/swagger-ui.css",
        swagger_favicon_url=f"{_STATIC}/favicon.png",
    )
    content = _dressed(bytes(page.body))
    headers = protective_headers(content)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(content, headers=headers)

    @app.get("/", include_in_schema=False)
    async def root() -> RedirectResponse:
        return RedirectResponse("/docs")


def _dressed(page: bytes) -> bytes:
    """Return the page with our style sheet and script, and links to the other pages."""
    head = f'<link rel="stylesheet" href="{_OURS}/docs.css"><script src="{_OURS}/docs.js"></script>'
    bar = (
        '<nav class="bar" aria-label="Pages"><b>Windrow</b><a href="dashboard">Dashboard</a>'
        '<a href="guide">Guide</a><span id="you"><a href="dashboard/sign-in">Sign in</a></span></nav>'
    )
    page = page.replace(b"</head>", head.encode() + b"</head>", 1)
    return page.replace(b"<body>", b"<body>" + bar.encode(), 1)


def protective_headers(page: bytes) -> dict[str, str]:
    """Return the headers of a page that runs scripts: only its own, and in no frame."""
    return {
        "Content-Security-Policy": _policy(page),
        # For browsers that do not support `frame-ancestors`.
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
    }


def _policy(page: bytes) -> str:
    """Return the policy of the page: only its own scripts, and requests to this coordinator."""
    digests = [hashlib.sha256(script).digest() for script in _INLINE_SCRIPT.findall(page)]
    sources = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {sources}",
            "style-src 'self'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
