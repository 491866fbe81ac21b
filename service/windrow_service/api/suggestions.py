"""Suggests tables that the caller may read, with names similar to one that does not exist."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from fastapi import FastAPI, Request, Response

from windrow_service.api.problems import problem_answer
from windrow_service.api.services import services_of
from windrow_service.usecases.errors import StoreUnavailableError
from windrow_service.usecases.tables.errors import TableNotFoundError


def install(app: FastAPI) -> None:
    """Make an application suggest similar names when it does not find a table."""
    app.add_exception_handler(TableNotFoundError, _answer)


async def _answer(request: Request, error: Exception) -> Response:
    assert isinstance(error, TableNotFoundError)
    with suppress(StoreUnavailableError):
        tables = services_of(request).tables.tables
        readable = request.state.principal.tables
        error = replace(error, near=tuple(await tables.similar(error.table, readable)))
    return problem_answer(request, error)
