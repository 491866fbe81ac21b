"""Delta tables written by hand: logs, deletion vectors and checkpoints of Delta's protocol."""

from __future__ import annotations

import json
import struct
import uuid
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

Action: TypeAlias = dict[str, Any]

PUBLISHED = Path(__file__).parents[2] / "fixtures" / "delta-io"
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_MAGIC = struct.pack("<I", 1681511377)
TYPES = {
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float64(): "double",
    pa.string(): "string",
    pa.date32(): "date",
}


def protocol(version: int = 1, *features: str) -> Action:
    """Return an action with the version and features that readers must know."""
    more = {"readerFeatures": list(features), "writerFeatures": list(features)} if features else {}
    return {
        "protocol": {"minReaderVersion": version, "minWriterVersion": 7 if features else 2, **more}
    }


def column(name: str, type_: Any, **metadata: Any) -> dict[str, Any]:
    """Return a field of a schema."""
    return {"name": name, "type": type_, "nullable": True, "metadata": metadata}


def metadata(
    columns: Iterable[Mapping[str, Any]],
    partition: Iterable[str] = (),
    configuration: Mapping[str, str] | None = None,
) -> Action:
    """Return an action that defines the columns."""
    schema = {"type": "struct", "fields": list(columns)}
    return {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema),
            "partitionColumns": list(partition),
            "configuration": dict(configuration or {}),
            "createdTime": 1_700_000_000_000,
        }
    }


def add(path: str, *, rows: int | None = None, **fields: Any) -> Action:
    """Return an action that adds a file."""
    stats = {"stats": json.dumps({"numRecords": rows})} if rows is not None else {}
    figures = {
        "path": path,
        "partitionValues": {},
        "size": 1_000,
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
    }
    return {"add": {**figures, **stats, **fields}}


def remove(path: str, **fields: Any) -> Action:
    """Return an action that removes a file."""
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **fields}}


@dataclass
class DeltaLog:
    """The log of a table, written version by version."""

    folder: Path
    version: int = field(default=-1)

    def __post_init__(self) -> None:
        self.log.mkdir(parents=True, exist_ok=True)

    @property
    def log(self) -> Path:
        """The folder of the log."""
        return self.folder / "_delta_log"

    def commit(self, *actions: Action) -> int:
        """Write the next version, and return its number."""
        self.version += 1
        lines = [json.dumps(action) for action in actions]
        self.commit_path(self.version).write_text("\n".join(lines))
        return self.version

    def commit_path(self, version: int) -> Path:
        """Return the file of a version."""
        return self.log / f"{version:020}.json"

    def write_file(self, name: str, rows: pa.Table, **fields: Any) -> Action:
        """Write a data file, and return the action that adds it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
        return add(name, rows=len(rows), size=path.stat().st_size, **fields)


def base85(content: bytes) -> str:
    """Return bytes as ZeroMQ's Base85, padded to words as Delta's Java does."""
    content += b"\0" * (-len(content) % 4)
    text = ""
    for (word,) in struct.iter_unpack(">I", content):
        text += "".join(_ALPHABET[word // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


def bitmap(positions: Iterable[int]) -> bytes:
    """Return a deletion vector as Delta stores it: the magic, and a portable bitmap of 64 bits."""
    from pyroaring import BitMap64

    content: bytes = BitMap64(positions).serialize()
    return _MAGIC + content


def inline_vector(positions: Iterable[int]) -> dict[str, Any]:
    """Return a deletion vector that is in the log itself."""
    positions = list(positions)
    content = bitmap(positions)
    return {
        "storageType": "i",
        "pathOrInlineDv": base85(content),
        "sizeInBytes": len(content),
        "cardinality": len(positions),
    }


def write_vectors(
    folder: Path, vectors: Iterable[Iterable[int]], prefix: str = ""
) -> list[dict[str, Any]]:
    """Write deletion vectors to one file of a table, and return the log's entry for each."""
    name = uuid.uuid4()
    path = folder / prefix / f"deletion_vector_{name}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    content, descriptors = b"\x01", []
    for positions in map(list, vectors):
        body = bitmap(positions)
        descriptors.append(
            {
                "storageType": "u",
                "pathOrInlineDv": prefix + base85(name.bytes),
                "offset": len(content),
                "sizeInBytes": len(body),
                "cardinality": len(positions),
            }
        )
        content += struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
    path.write_bytes(content)
    return descriptors
