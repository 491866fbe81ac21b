"""The manifests that refreshes make of published test files, or why a refresh refuses them."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic import BaseModel

from tests.support.golden.files import lines_of
from tests.support.tables.first_inventories import first_request
from tests.support.tables.iceberg import published_tables, table_with_odd_names
from windrow.models import TableDefinition
from windrow_service import directories
from windrow_service.inventory.footers.isolation import IsolatedExecutor
from windrow_service.kinds import delta, folders

_FIXTURES = Path(__file__).parents[2] / "fixtures"
_FORMATS = {
    ".avro": "avro",
    ".csv": "csv",
    ".gz": "csv",
    ".json": "json",
    ".orc": "orc",
    ".parquet": "parquet",
    ".txt": "text",
}
_DECLARED = {
    "csv": [{"name": "a", "type": "string"}, {"name": "b", "type": "decimal(10,2)"}],
    "json": [{"name": "a", "type": "array<struct<b:int>>"}, {"name": "c", "type": "date"}],
}
_TRANSACTIONAL = {
    "alltypes_non_acid.orc": "000000_0",
    "full_acid_schema_but_no_acid_version.orc": "base_0000001/bucket_00000",
    "streaming.orc": "delta_0000001_0000002/bucket_00000",
}
_PARTITIONED = {
    "alltypes_plain.parquet": "ds=2026-11-01/n=1/a.parquet",
    "alltypes_dictionary.parquet": "ds=2026-11-02/n=%C3%A5 b/a.parquet",
}
# Of all files, whenever they were copied.
_TIME_NS = 1_700_000_000_123_456_789


def text() -> str:
    """Return a row for each table that the fixtures make."""
    with tempfile.TemporaryDirectory() as folder, _same_processes():
        root = Path(folder).resolve()
        # What ORC's reader prints would show in the last words of a process that ends later.
        tables = sorted(_tables(root), key=lambda table: table[2]["format"] == "orc")
        rows = [_row(root, *table) for table in tables]
    return lines_of(sorted(rows, key=lambda row: row["table"]))


@contextmanager
def _same_processes() -> Iterator[None]:
    """Read all tables in the same processes: new ones for each would take most of the time."""
    with ExitStack() as stack:
        executor = stack.enter_context(IsolatedExecutor(1))
        for module, name in ((folders, "take_inventory"), (delta, "take_version")):
            take = partial(getattr(module, name), executor=executor)
            stack.enter_context(patch.object(module, name, take))
        yield


def _tables(root: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Make tables in a folder; yield the name, the location and the definition of each."""
    for source in sorted(_FIXTURES.glob("*/*")):
        name = str(source.relative_to(_FIXTURES))
        if source.is_dir():
            yield name, Path(shutil.copytree(source, root / name)), {"format": "delta"}
        elif source.suffix in _FORMATS and source.parent.name != "apache-iceberg":
            format_ = _FORMATS[source.suffix]
            options = {"format": format_, "columns": _DECLARED.get(format_)}
            yield name, _copied(root / name, {source: source.name}), options
    impala, parquet = _FIXTURES / "apache-impala", _FIXTURES / "parquet-testing"
    for file, place in _TRANSACTIONAL.items():
        name = f"transactional/{file}"
        full = {"format": "orc", "transactional": "full"}
        yield name, _copied(root / name, {impala / file: place}), full
    files = {parquet / file: place for file, place in _PARTITIONED.items()}
    with_bloom_filters = {"format": "parquet", "bloom_columns": ["id", "string_col"]}
    yield "partitioned", _copied(root / "partitioned", files), with_bloom_filters
    for location in published_tables(root / "iceberg"):
        yield f"apache-iceberg/{location.name}", location, {"format": "iceberg"}
    yield "apache-iceberg/odd_names", table_with_odd_names(root)[0], {"format": "iceberg"}


def _copied(location: Path, files: dict[Path, str]) -> Path:
    for source, place in files.items():
        target = location / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return location


def _row(root: Path, name: str, location: Path, options: dict[str, Any]) -> dict[str, Any]:
    for path in location.rglob("*"):
        os.utime(path, ns=(_TIME_NS, _TIME_NS))
    definition = TableDefinition.model_validate({"location": str(location), **options})
    inventories = directories.DirectoryInventories((str(root),))
    row = {"table": name, "format": definition.format}
    try:
        inventory = inventories.take(first_request(definition))
    except Exception as error:
        return {**row, "refused": str(error).replace(str(root), "")}
    # All fields: the model itself shows them shortened.
    log = inventory.log and BaseModel.__str__(inventory.log)
    schemas = (
        f"{inventory.data_schema}\n{inventory.partition_schema}\n{log}\n{inventory.delete_files}"
    )
    return {
        **row,
        "files": inventory.file_count,
        "rows": inventory.row_count,
        "bytes": inventory.size_bytes,
        "schemas": _digest(schemas.encode()),
        "manifests": _digest(*(manifest.data or b"" for manifest in inventory.manifests)),
    }


def _digest(*contents: bytes) -> str:
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    return digest.hexdigest()[:16]
