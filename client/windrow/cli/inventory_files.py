"""Reading inventories from Parquet, Arrow, CSV or JSON lines files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import WindrowError

_BETWEEN_HOSTS = ";"


class InventoryFileError(WindrowError):
    """A file does not hold an inventory."""


def read_inventory(path: Path) -> pa.Table:
    """Return the rows of an inventory file; the suffix gives its format.

    In CSV, hosts are joined with `;`.

    Raises:
        InventoryFileError: The file cannot be read as an inventory.
    """
    try:
        with path.open("rb") as file:
            return _read(path.suffix.lower(), file)
    except (OSError, pa.ArrowException) as error:
        raise InventoryFileError(f"{path} cannot be read: {error}") from error


def _read(suffix: str, file: object) -> pa.Table:
    # Each import takes a while, and only one of them is needed.
    if suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(file)
    if suffix in (".arrow", ".feather"):
        return pa.ipc.open_file(file).read_all()
    if suffix == ".arrows":
        return pa.ipc.open_stream(file).read_all()
    if suffix == ".csv":
        from pyarrow import csv

        return _split_hosts(csv.read_csv(file))
    if suffix in (".jsonl", ".ndjson"):
        from pyarrow import json

        return json.read_json(file)
    raise InventoryFileError(
        f"{suffix or 'a file without a suffix'} is not an inventory's: name it .parquet, .arrow, "
        ".arrows, .csv or .jsonl"
    )


def _split_hosts(files: pa.Table) -> pa.Table:
    at = files.schema.get_field_index("hosts")
    if at < 0:
        return files
    text = files["hosts"].cast(pa.string()).fill_null("")
    hosts = pc.if_else(
        pc.equal(text, ""),
        pa.scalar([], pa.list_(pa.string())),
        pc.split_pattern(text, _BETWEEN_HOSTS),
    )
    return files.set_column(at, "hosts", hosts)
