"""Loads everything that pages need, so that the first page of a process does not wait for it."""

from __future__ import annotations

from windrow_service.api.html.rendering import PROBLEM, environment
from windrow_service.logs import get_logger

_log = get_logger(__name__)


def load_pages() -> None:
    """Import the libraries, and compile all templates."""
    pages = environment(True)
    for name in pages.list_templates():
        pages.get_template(name)
    environment(False).get_template(PROBLEM)
    _log.debug("pages are loaded")
