"""Database work of commands without a coordinator; its own module starts three times as fast."""

from __future__ import annotations

import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import sqlalchemy as sa

from windrow_service.settings import Settings
from windrow_service.store.database import (
    database_path,
    embedded_url,
    open_database,
    server_url,
)
from windrow_service.store.tokens import SqlTokenStore
from windrow_service.usecases.access.tokens import ManageTokens
from windrow_service.usecases.audit import Actor, acting


def database_url(settings: Settings) -> sa.URL:
    """Return the URL of the database; create the file of an embedded one."""
    if settings.database_url is None:
        return embedded_url(settings.state_dir)
    return server_url(settings.database_url.get_secret_value())


def is_database_there(settings: Settings) -> bool:
    """Return whether the database exists, so that opening it would not create it."""
    return settings.database_url is not None or database_path(settings.state_dir).is_file()


@asynccontextmanager
async def open_tokens(settings: Settings) -> AsyncIterator[ManageTokens]:
    """Open the database for managing tokens, and close it on exit.

    Raises:
        StartError: The database is at another revision.
        StoreUnavailableError: It does not answer.
    """
    database = await open_database(database_url(settings))
    try:
        with acting(lambda: Actor(f"command:{_user()}", "windrow token")):
            yield ManageTokens(tokens=SqlTokenStore(database), clock=database.clock)
    finally:
        await database.aclose()


async def trust_clock(settings: Settings) -> datetime | None:
    """Note in an embedded database that this machine's clock is right.

    Returns:
        The time; None if the database is a server, whose own clock counts.

    Raises:
        StoreUnavailableError: The database cannot be changed.
    """
    database = await open_database(database_url(settings))
    try:
        await database.trust_machine()
        await database.clock.look()
        return None if database.is_postgresql else database.clock()
    finally:
        await database.aclose()


def _user() -> str:
    try:
        return getpass.getuser()[:100]
    except (ImportError, KeyError, OSError):
        # Users of containers may have no name.
        return "unknown"
