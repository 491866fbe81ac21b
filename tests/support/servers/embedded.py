"""Embedded databases at the newest revision, copied instead of migrated."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import sqlalchemy as sa

import windrow
from windrow_service.store.database import database_path, embedded_url, upgrade_database


def upgraded(state_dir: Path) -> sa.URL:
    """Return the URL of the database in a folder; an empty one is made if there is none."""
    is_new = not database_path(state_dir).exists()
    url = embedded_url(state_dir)
    if is_new:
        database_path(state_dir).write_bytes(_newest())
    return url


def client(state_dir: Path, allowed_locations: Iterable[str]) -> windrow.Client:
    """Do what `windrow.embedded` does, from a copied database."""
    upgraded(state_dir)
    return windrow.embedded(state_dir, allowed_locations=tuple(allowed_locations))


@cache
def _newest() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        upgrade_database(embedded_url(Path(folder)))
        return database_path(Path(folder)).read_bytes()
