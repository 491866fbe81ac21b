"""Loads the parts of pages, when imported, so that forked coordinators inherit them."""

from __future__ import annotations

from windrow_service.api.html.loading import load_pages

load_pages()
