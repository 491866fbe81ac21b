"""Loads everything that pages need, so that the first page of a process does not wait for it."""

from __future__ import annotations

from windrow_service.api.html.charts import bars, lines
from windrow_service.api.html.rendering import PROBLEM, environment
from windrow_service.logs import get_logger

_log = get_logger(__name__)


def load_pages() -> None:
    """Import the libraries, compile all templates, and draw a chart of each kind."""
    pages = environment(True)
    for name in pages.list_templates():
        pages.get_template(name)
    environment(False).get_template(PROBLEM)
    bars("", [""], [0])
    lines("", ["", ""], {"": [0, 0]})
    _log.debug("pages are loaded")
