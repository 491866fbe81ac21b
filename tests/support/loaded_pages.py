"""Loads what pages need, when imported: forked coordinators get it from the process they come from."""

from __future__ import annotations

from windrow_service.api.html.loading import load_pages

load_pages()
