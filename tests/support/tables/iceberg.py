"""Iceberg tables for tests: made by PyIceberg with an SQL catalog, or published by Impala."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable, Table

from tests.support.tables.iceberg_files import moved_table

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_PUBLISHED = _FIXTURES / "apache-impala" / "iceberg_tables.zip"
_ODD_NAMES = _FIXTURES / "apache-iceberg" / "odd_names.zip"


class Here(Executor):
    """Runs submitted calls immediately, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


def catalog_in(folder: Path) -> SqlCatalog:
    """Return a catalog in a folder, with a namespace `ns` whose tables lie there too."""
    folder.mkdir(exist_ok=True)
    catalog = SqlCatalog(
        "tests", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}"
    )
    catalog.create_namespace_if_not_exists("ns")
    return catalog


def new_table(
    folder: Path, schema: pa.Schema, name: str = "t", **properties: str
) -> tuple[Table, str]:
    """Return a new table, and its location."""
    table = catalog_in(folder).create_table(f"ns.{name}", schema, properties=properties)
    return table, table.location().removeprefix("file://")


def published_table(name: str, folder: Path) -> Path:
    """Return the folder of one of Impala's tables, moved into a folder."""
    return _unpacked(_PUBLISHED, name, folder)


def published_tables(folder: Path) -> Iterator[Path]:
    """Move all of Impala's tables into a folder, one after the other, and yield their folders."""
    with zipfile.ZipFile(_PUBLISHED) as archive:
        names = sorted({one.partition("/")[0] for one in archive.namelist()})
    for name in names:
        yield published_table(name, folder)


def table_with_odd_names(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Return the folder of a table that Iceberg for Java wrote, and the rows that Spark read."""
    rows: list[dict[str, Any]] = json.loads(_ODD_NAMES.with_suffix(".json").read_text())
    return _unpacked(_ODD_NAMES, "odd_names", folder), rows


def _unpacked(zip_path: Path, name: str, folder: Path) -> Path:
    with zipfile.ZipFile(zip_path) as archive:
        members = [one for one in archive.namelist() if one.startswith(f"{name}/")]
        archive.extractall(folder / "published", members)
    return moved_table(folder / "published" / name, folder / name)


def newest_metadata(table: Path) -> Path:
    """Return the newest metadata file of a table without a catalog."""
    paths = table.glob("metadata/*.metadata.json")
    return max(paths, key=lambda path: int(re.findall(r"[0-9]+", path.name)[0]))


def planned_by_pyiceberg(table: Path) -> Mapping[str, tuple[int, list[str]]]:
    """Return rows and delete files of each data file, as PyIceberg plans a scan."""
    scan = StaticTable.from_metadata(str(newest_metadata(table))).scan()
    prefix = f"{table}/"
    return {
        task.file.file_path.removeprefix(prefix): (
            task.file.record_count,
            sorted(one.file_path.removeprefix(prefix) for one in task.delete_files),
        )
        for task in scan.plan_files()
    }
