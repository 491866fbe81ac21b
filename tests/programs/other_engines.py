"""Reads tables in DuckDB and in Polars, each by its own reader of Iceberg's metadata.

    python other_engines.py URL TOKEN

takes a JSON object from its input: for each engine a list of questions, which are SQL that names
tables as `w.name`; for Polars, a name of a table asks for all of its rows. It prints an object of their answers: for each question the rows,
as `row_texts` has them, or the error as a text.
"""

from __future__ import annotations

import glob
import hashlib
import importlib
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

EXTENSIONS = ("httpfs", "avro", "iceberg")
_MANY = 100_000


def duckdb_reader(url: str, token: str) -> Callable[[str], list[tuple[Any, ...]]]:
    """Return a function that answers SQL; the catalog is attached as `w`."""
    duckdb: Any = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    packages = Path(duckdb.__file__).parents[1]
    for name in EXTENSIONS:
        (file,) = glob.glob(
            f"{packages}/duckdb_extension_{name}/**/*.duckdb_extension", recursive=True
        )
        connection.execute(f"LOAD '{file}'")
    connection.execute("SET TimeZone = 'UTC'")
    login = "AUTHORIZATION_TYPE 'none'"
    if token:
        connection.execute(f"CREATE SECRET s (TYPE iceberg, TOKEN '{token}')")
        login = "SECRET s"
    connection.execute(f"ATTACH '' AS w (TYPE iceberg, ENDPOINT '{url}/iceberg', {login})")
    return lambda sql: list(connection.execute(sql).fetchall())


def polars_reader(url: str, token: str) -> Callable[[str], list[tuple[Any, ...]]]:
    """Return a function that asks Polars's own planner."""
    from pyiceberg.catalog.rest import RestCatalog

    options = {"header.X-Windrow-Reader": "polars", **({"token": token} if token else {})}
    catalog = RestCatalog("w", uri=f"{url}/iceberg", **options)
    return lambda question: polars_rows(catalog, question)


def polars_rows(catalog: Any, question: str) -> list[tuple[Any, ...]]:
    """Return what Polars answers to SQL about one table of a catalog, or to the table's name."""
    import polars as pl

    match = re.search(r"FROM w\.(\S+)", question)
    frame = pl.scan_iceberg(catalog.load_table(match[1] if match else question))
    if match:
        frame = pl.SQLContext(t=frame).execute(question.replace(f"w.{match[1]}", "t"), eager=False)
    return frame.collect().rows()


def row_texts(rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return rows as sorted texts that are equal for equal values, whatever classes engines have.

    Of many rows, returns one text: their number, and the hash of all.
    """
    texts = sorted(repr([_plain(value) for value in row]) for row in rows)
    if len(texts) < _MANY:
        return texts
    return [f"{len(texts)} rows, {hashlib.sha256(chr(10).join(texts).encode()).hexdigest()}"]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        has_zone = value.tzinfo is not None
        return (value.astimezone(timezone.utc) if has_zone else value).isoformat()
    if isinstance(value, (date, Decimal)):
        return str(value)
    if isinstance(value, dict):
        return [[_plain(key), _plain(one)] for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def main() -> None:
    """Answer all questions."""
    warnings.simplefilter("ignore")
    url, token = sys.argv[1:]
    readers = {"duckdb": duckdb_reader, "polars": polars_reader}
    questions = json.load(sys.stdin)
    answers: dict[str, list[Any]] = {}
    for engine, some in questions.items():
        read = readers[engine](url, token)
        answers[engine] = [_answer(read, question) for question in some]
    json.dump(answers, sys.stdout)


def _answer(read: Callable[[str], list[tuple[Any, ...]]], question: str) -> Any:
    try:
        return row_texts(read(question))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
