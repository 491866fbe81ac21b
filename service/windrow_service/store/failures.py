"""What an error of the database means: whether waiting may help, and what to do if not."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

import psycopg
import sqlalchemy as sa

from windrow_service.usecases.errors import StoreUnavailableError

RETRY_AFTER_S = 2

_ROOM = "make sure that its disk has room"
_DISK = "make sure that its disk works and takes writes"
_CONNECTION = "make sure that it runs and can be reached"
# By SQLSTATE: states that last until somebody changes something.
_LASTING: Mapping[str, str] = {
    "25006": "make sure that it takes writes and is not a standby",
    "42501": "make sure that the coordinator's user has all rights on its tables",
    "53100": _ROOM,
    "58030": _DISK,
    "58P01": _DISK,
    "XX001": _DISK,
    "XX002": _DISK,
}
# By SQLite's words, as its codes are known from Python 3.11 on only.
FOLDER = "make sure that the coordinator's user may write to its folder"
_OF_SQLITE: Mapping[str, str] = {
    "database or disk is full": _ROOM,
    "disk I/O error": _DISK,
    "unable to open database file": FOLDER,
    "attempt to write a readonly database": (f"{FOLDER}, and that its disk is mounted for writing"),
}


def raise_named(error: sa.exc.DBAPIError | sa.exc.TimeoutError) -> None:
    """Raise the error for a failure of the database; return if the fault lies in this code."""
    if isinstance(error, sa.exc.TimeoutError):
        reason = "all of its connections are in use"
        raise StoreUnavailableError(reason, RETRY_AFTER_S, passing=True) from error
    trouble = error.orig
    if isinstance(trouble, psycopg.Error):
        _raise_of_postgresql(trouble, error)
    elif type(trouble) is sqlite3.DatabaseError or isinstance(trouble, sqlite3.OperationalError):
        advice = _OF_SQLITE.get(str(trouble), StoreUnavailableError.advice)
        raise StoreUnavailableError(str(trouble), RETRY_AFTER_S, False, advice) from error


def _raise_of_postgresql(trouble: psycopg.Error, error: Exception) -> None:
    if trouble.sqlstate is None:
        if isinstance(trouble, (psycopg.OperationalError, psycopg.InterfaceError)):
            # Such an error is from libpq, and its text contains host, user and database.
            reason = "no connection"
            raise StoreUnavailableError(reason, RETRY_AFTER_S, True, _CONNECTION) from error
        return
    lasting = _LASTING.get(trouble.sqlstate)
    if lasting is not None or isinstance(trouble, psycopg.OperationalError):
        reason = (trouble.diag.message_primary or type(trouble).__name__).splitlines()[0]
        advice = lasting or StoreUnavailableError.advice
        raise StoreUnavailableError(reason, RETRY_AFTER_S, lasting is None, advice) from error
