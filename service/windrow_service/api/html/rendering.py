"""Pages from templates: their common parts, and pages of errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from windrow_core.cards import card_of, count_text, grid_of, in_one_line
from windrow_core.filter_text import filter_text
from windrow_core.sizes import mean_text, size_text
from windrow_service.api.html.explanations import EXPLANATIONS
from windrow_service.api.html.units import duration_texts, size_texts
from windrow_service.api.services import services_of
from windrow_service.usecases.upkeep.overview import opening_seconds

if TYPE_CHECKING:
    from jinja2 import Environment

ROOT = "/dashboard"
SIGN_IN = f"{ROOT}/sign-in"
PROBLEM = "problem.html"
_MAX_ASKED = 1_000
# Times since then are shown as how long ago they were.
_RECENT_S = 60 * 86_400
# A unit of that, its seconds, and how many of it are told before the next one is used.
_AGO = (("s", 1, 60), ("min", 60, 60), ("h", 3_600, 48), ("days", 86_400, 60))
# Pages below `ROOT`. None leads out of it: no part begins with a dot or is encoded.
_PAGE = re.compile(r"[a-z]+(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*(\?[!-~]*)?")
# Scripts, styles and forms of this origin only, and nothing within the pages themselves.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self' data:; "
    "script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    # For browsers that do not support `frame-ancestors`.
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    # The next caller on the same machine must not see the pages of the last one.
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class MenuItem:
    """A link to a page in the menu of all pages; some are only for `admin` on everything."""

    path: str
    title: str
    needs_admin: bool = False


def is_page(path: str) -> bool:
    """Return whether a path is that of a page."""
    return path == ROOT or path.startswith(f"{ROOT}/")


def relative_to(request: Request, path: str) -> str:
    """Return a path relative to the page, because a proxy may add a prefix to all paths."""
    return "../" * (request.url.path.count("/") - 1) + path.removeprefix("/")


def redirect(request: Request, path: str) -> Response:
    """Return a redirect to another page, after a form or instead of this page."""
    return RedirectResponse(relative_to(request, path), HTTPStatus.SEE_OTHER)


def page_asked_for(path: str) -> str:
    """Return the page that a browser asked for if it is a page here, else the first page."""
    return path if len(path) <= _MAX_ASKED and _PAGE.fullmatch(path) else "overview"


async def page(request: Request, template: str, **context: Any) -> Response:
    """Return a page."""
    html = environment(True).get_template(template)
    text = await html.render_async(**_common(request), **context)
    return HTMLResponse(text, headers=_HEADERS)


def page_in_parts(request: Request, template: str, **context: Any) -> Response:
    """Return a page whose beginning is sent before its template awaits slower parts."""
    html = environment(True).get_template(template)
    parts = html.generate_async(**_common(request), **context)
    return StreamingResponse(parts, headers=_HEADERS, media_type="text/html; charset=utf-8")


def problem_page(
    request: Request, problem: Mapping[str, Any], headers: Mapping[str, str]
) -> Response:
    """Return the page of an error, or a redirect to the sign-in page."""
    status = problem["status"]
    if status == HTTPStatus.UNAUTHORIZED and request.url.path != SIGN_IN:
        target = request.url.path.removeprefix(ROOT).removeprefix("/")
        if request.url.query:
            target += f"?{request.url.query}"
        back = f"?to={quote(target)}" if target and request.method == "GET" else ""
        to = relative_to(request, SIGN_IN) + back
        return RedirectResponse(to, HTTPStatus.SEE_OTHER, {"Cache-Control": "no-store"})
    html = environment(False).get_template(PROBLEM)
    others = {name: text for name, text in headers.items() if name != "WWW-Authenticate"}
    return HTMLResponse(
        html.render(**_common(request), problem=problem), status, {**_HEADERS, **others}
    )


def _common(request: Request) -> dict[str, Any]:
    principal = getattr(request.state, "principal", None)
    services = services_of(request)
    return {
        "here": request.url.path,
        "menu": request.app.state.menu,
        "link": lambda path: relative_to(request, path),
        "principal": principal,
        "tokens_required": services.access.authenticate.required,
        "form": services.access.browsers.form_of(principal.name) if principal else "",
        "now": services.operations.clock(),
    }


@cache
def environment(is_async: bool) -> Environment:
    """Return the templates, for pages that await what they show or for pages that do not."""
    # Imported late, like everything that only pages need: many coordinators never show one.
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context

    templates = Environment(
        loader=PackageLoader("windrow_service.api.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        enable_async=is_async,
        # Templates change only with the version.
        auto_reload=False,
    )
    templates.filters.update(
        size=size_text,
        number=_number,
        count_text=count_text,
        mean_text=mean_text,
        when=pass_context(lambda context, at: _when(at, context["now"])),
        exact=_exact,
        seconds=_seconds,
        opening_seconds=opening_seconds,
        durations=_durations,
        sizes=_sizes,
        sql=filter_text,
        with_code=_with_code,
        heading=_heading,
    )
    templates.globals |= {"explanations": EXPLANATIONS, "card_of": card_of, "grid_of": grid_of}
    return templates


def _with_code(text: str) -> str:
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _heading(title: str) -> str:
    text = in_one_line(title)
    return text[:1].upper() + text[1:]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _exact(at: datetime | None) -> str:
    return "never" if at is None else f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _when(at: datetime | None, now: datetime) -> str:
    """Return how long ago a time of the last weeks was, or how long until then, else the time."""
    if at is None:
        return "never"
    from markupsafe import Markup

    ago_s = (now - at).total_seconds()
    text = _exact(at) if abs(ago_s) >= _RECENT_S else _ago(ago_s)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.astimezone(timezone.utc).isoformat(timespec="seconds"), _exact(at), text
    )


def _ago(seconds: float) -> str:
    unit, size, _ = next(one for one in _AGO if abs(seconds) < one[1] * one[2])
    text = f"{abs(seconds) / size:.0f} {unit}"
    # The clock of the database may be a moment behind.
    return f"{text} ago" if seconds > -1 else f"in {text}"


def _seconds(value: float) -> str:
    (text,) = duration_texts([value])
    return text


def _durations(values: Iterable[float | None]) -> Sequence[str]:
    """Return durations of a sentence or a column in one unit; those that are unknown are empty."""
    return _texts(duration_texts, values)


def _sizes(values: Iterable[float | None]) -> Sequence[str]:
    """Return the sizes of a column in one unit; those that are unknown are empty."""
    return _texts(size_texts, values)


def _texts(
    texts_of: Callable[[Sequence[float]], Sequence[str]], values: Iterable[float | None]
) -> Sequence[str]:
    lengths = list(values)
    texts = iter(texts_of([one for one in lengths if one is not None]))
    return ["" if one is None else next(texts) for one in lengths]
