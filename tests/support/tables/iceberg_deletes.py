"""Commits of delete files by Iceberg's specification, since PyIceberg writes none."""

from __future__ import annotations

import copy
import json
import sqlite3
import time
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.table import Table
from pyroaring import BitMap

from tests.support.tables.iceberg_files import Record, read_avro, write_avro

_BITMAP_MAGIC = 1681511377
_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_OPTIONAL = (("referenced_data_file", 143, "string"), ("content_offset", 144, "long"))
_SIZES = (*_OPTIONAL, ("content_size_in_bytes", 145, "long"))


def delete_positions(table: Table, positions: dict[str, Sequence[int]], name: str = "") -> None:
    """Commit a file of positions of deleted rows.

    Args:
        table: The table.
        positions: Deleted rows of each data file, by its full path.
        name: Name of the file; a new one by default.
    """
    pairs = [(path, one) for path in sorted(positions) for one in sorted(positions[path])]
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), metadata=_id(_PATH_ID)),
            pa.field("pos", pa.int64(), metadata=_id(_POSITION_ID)),
        ]
    )
    rows = pa.table(list(zip(*pairs, strict=True)), schema=schema)
    path = _new_file(table, name, "-deletes.parquet")
    pq.write_table(rows, path)
    file = {"file_format": "PARQUET", "record_count": len(rows), "content": 1}
    if len(positions) == 1:
        (bound,) = (one.encode() for one in positions)
        file |= {
            one: [{"key": _PATH_ID, "value": bound}] for one in ("lower_bounds", "upper_bounds")
        }
    _commit(table, [(path, file)])


def delete_by_vector(table: Table, positions: dict[str, Sequence[int]]) -> None:
    """Commit deletion vectors: one blob for each data file, all in one Puffin file.

    The table then has format version 3, which PyIceberg does not write.
    """
    path = _new_file(table, "", ".puffin")
    content, blobs, files = b"PFA1", [], []
    for data_path, rows in sorted(positions.items()):
        bitmap = BitMap(rows).serialize()
        vector = _BITMAP_MAGIC.to_bytes(4, "little") + (1).to_bytes(8, "little")
        vector += (0).to_bytes(4, "little") + bitmap
        blob = len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")
        files.append(
            (
                path,
                {
                    "file_format": "PUFFIN",
                    "record_count": len(rows),
                    "content": 1,
                    "referenced_data_file": data_path,
                    "content_offset": len(content),
                    "content_size_in_bytes": len(blob),
                },
            )
        )
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(content),
                "length": len(blob),
                "properties": {"referenced-data-file": data_path, "cardinality": str(len(rows))},
            }
        )
        content += blob
    footer = json.dumps({"blobs": blobs}).encode()
    path.write_bytes(
        content + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    )
    _commit(table, files, format_version=3)


def delete_equal(table: Table, column: str, values: pa.Array) -> None:
    """Commit a file of values of a column; rows with one of these values are deleted."""
    field_id = table.schema().find_field(column).field_id
    schema = pa.schema([pa.field(column, values.type, metadata=_id(field_id))])
    path = _new_file(table, "", "-equality.parquet")
    pq.write_table(pa.table([values], schema=schema), path)
    file = {
        "file_format": "PARQUET",
        "record_count": len(values),
        "content": 2,
        "equality_ids": [field_id],
    }
    _commit(table, [(path, file)])


def _id(field_id: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(field_id)}


def _location(table: Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def _new_file(table: Table, name: str, suffix: str) -> Path:
    folder = _location(table) / "data"
    folder.mkdir(exist_ok=True)
    return folder / f"{name or uuid.uuid4()}{suffix}"


def _local(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def _commit(table: Table, files: Sequence[tuple[Path, Record]], format_version: int = 2) -> None:
    """Commit delete files of an unpartitioned table, and tell its catalog."""
    table.refresh()
    metadata = json.loads(_local(table.metadata_location).read_text())
    current = next(
        one
        for one in metadata["snapshots"]
        if one["snapshot-id"] == metadata["current-snapshot-id"]
    )
    list_schema, list_head, manifests = read_avro(_local(current["manifest-list"]))
    sequence, snapshot_id = metadata["last-sequence-number"] + 1, uuid.uuid4().int >> 65
    folder = _location(table) / "metadata"
    manifest = folder / f"{uuid.uuid4()}-m0.avro"
    entry_schema, head, entries = read_avro(_local(manifests[0]["manifest_path"]))
    template = copy.deepcopy(entries[0])
    for name in template["data_file"]:
        if isinstance(template["data_file"][name], list):
            template["data_file"][name] = None
    records = []
    for path, file in files:
        one = copy.deepcopy(template)
        one |= {"status": 1, "snapshot_id": snapshot_id}
        one |= {"sequence_number": None, "file_sequence_number": None}
        one["data_file"] |= {
            "file_path": f"file://{path}",
            "file_size_in_bytes": path.stat().st_size,
            **file,
        }
        records.append(one)
    length = write_avro(
        manifest, _with_fields(entry_schema), {**head, "content": "deletes"}, records
    )
    list_entry = {
        **manifests[0],
        "manifest_path": f"file://{manifest}",
        "manifest_length": length,
        "content": 1,
        "sequence_number": sequence,
        "min_sequence_number": sequence,
        "added_snapshot_id": snapshot_id,
        "added_files_count": len(files),
        "existing_files_count": 0,
        "deleted_files_count": 0,
    }
    list_path = folder / f"snap-{snapshot_id}-0-{uuid.uuid4()}.avro"
    write_avro(list_path, list_schema, list_head, [*manifests, list_entry])
    snapshot = {
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": current["snapshot-id"],
        "sequence-number": sequence,
        "timestamp-ms": max(int(time.time() * 1_000), metadata["last-updated-ms"] + 1),
        "manifest-list": f"file://{list_path}",
        "summary": {"operation": "delete"},
        "schema-id": metadata["current-schema-id"],
    }
    if format_version > 2:
        snapshot |= {"first-row-id": 0, "added-rows": 0}
        metadata |= {"format-version": format_version, "next-row-id": 1_000_000}
    metadata["snapshots"].append(snapshot)
    metadata.setdefault("snapshot-log", []).append(
        {name: snapshot[name] for name in ("snapshot-id", "timestamp-ms")}
    )
    metadata["refs"]["main"]["snapshot-id"] = snapshot_id
    metadata |= {
        "current-snapshot-id": snapshot_id,
        "last-sequence-number": sequence,
        "last-updated-ms": snapshot["timestamp-ms"],
    }
    _tell(table, folder, metadata)


def _with_fields(schema: Any) -> Any:
    """Return the schema of entries with the fields that version 3 has added."""
    (file,) = (one for one in schema["fields"] if one["name"] == "data_file")
    names = {one["name"] for one in file["type"]["fields"]}
    for field in file["type"]["fields"]:
        if field["name"] == "equality_ids":
            # PyIceberg writes them longer than Iceberg's library for Java reads them.
            field["type"][1]["items"] = "int"
    for name, id_, type_ in _SIZES:
        if name not in names:
            field = {"name": name, "field-id": id_, "type": ["null", type_], "default": None}
            file["type"]["fields"].append(field)
    return schema


def _tell(table: Table, folder: Path, metadata: Record) -> None:
    number = 1 + max(int(path.name.split("-")[0]) for path in folder.glob("*.metadata.json"))
    path = folder / f"{number:05}-{uuid.uuid4()}.metadata.json"
    path.write_text(json.dumps(metadata))
    database = str(table.catalog.properties["uri"]).removeprefix("sqlite:///")
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = ?",
            (f"file://{path}", table.name()[-1]),
        )
    connection.close()
    table.refresh()
