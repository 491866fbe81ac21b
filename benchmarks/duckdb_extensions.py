"""Load DuckDB's extensions from the packages `duckdb-extension-*`, which need no download."""

from __future__ import annotations

import os
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class NoExtensionError(Exception):
    """An extension is not installed for this release of DuckDB."""


def load_extension(connection: DuckDBPyConnection, name: str) -> None:
    """Load an extension.

    Raises:
        NoExtensionError: Its package is not installed, or is for another release of DuckDB.
    """
    import duckdb

    try:
        files = resources.files(f"duckdb_extension_{name}") / "extensions"
        path = files / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        connection.execute(f"LOAD '{path}'")
    except (ModuleNotFoundError, duckdb.Error) as error:
        raise NoExtensionError(str(error).partition("\n")[0]) from error


def use_s3(connection: DuckDBPyConnection) -> None:
    """Let a connection read from the S3 store that the environment names.

    Raises:
        NoExtensionError: See `load_extension`.
    """
    load_extension(connection, "httpfs")
    connection.execute(
        "CREATE SECRET (TYPE s3, USE_SSL false, URL_STYLE 'path', KEY_ID ?, SECRET ?, ENDPOINT ?, "
        "REGION ?)",
        [
            os.environ["AWS_ACCESS_KEY_ID"],
            os.environ["AWS_SECRET_ACCESS_KEY"],
            os.environ["AWS_ENDPOINT_URL"].removeprefix("http://"),
            os.environ["AWS_REGION"],
        ],
    )
