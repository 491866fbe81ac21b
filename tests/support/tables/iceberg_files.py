"""Writes Iceberg's metadata by hand: moved tables, and commits that PyIceberg does not make."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fastavro

Record = dict[str, Any]


def read_avro(path: Path) -> tuple[Any, Mapping[str, str], list[Record]]:
    """Return the schema, the metadata and the records of an Avro file."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        records = [record for record in reader if isinstance(record, dict)]
        metadata = {
            name: value for name, value in reader.metadata.items() if not name.startswith("avro.")
        }
        return json.loads(reader.metadata["avro.schema"]), metadata, records


def write_avro(
    path: Path,
    schema: Any,
    metadata: Mapping[str, str],
    records: list[Record],
    codec: str = "deflate",
) -> int:
    """Write an Avro file, and return its length."""
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, codec=codec, metadata=dict(metadata))
    return path.stat().st_size


def moved_table(source: Path, target: Path) -> Path:
    """Copy a table to another folder, and change all paths in its metadata accordingly."""
    shutil.copytree(source, target)
    metadata = sorted(target.glob("metadata/*.metadata.json"))
    location = json.loads(metadata[-1].read_text())["location"]

    def moved(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: moved(one) for name, one in value.items()}
        if isinstance(value, list):
            return [moved(one) for one in value]
        if isinstance(value, bytes):
            return value.replace(location.encode(), str(target).encode())
        return value.replace(location, str(target)) if isinstance(value, str) else value

    for path in metadata:
        path.write_text(json.dumps(moved(json.loads(path.read_text()))))
    lists = sorted(target.glob("metadata/snap-*.avro"))
    for path in sorted(target.glob("metadata/*.avro")):
        if path not in lists:
            schema, head, records = read_avro(path)
            write_avro(path, schema, head, moved(records))
    for path in lists:
        schema, head, records = read_avro(path)
        records = moved(records)
        for record in records:
            record["manifest_length"] = Path(record["manifest_path"]).stat().st_size
        write_avro(path, schema, head, records)
    return target
