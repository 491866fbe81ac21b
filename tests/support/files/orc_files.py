"""ORC files written by Arrow, or put together from ORC's own messages where Arrow cannot."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc

from windrow_service.orc.columns import Kind
from windrow_service.orc.messages import FileTail, PostScript

NONE, ZLIB = 0, 1


def write(location: Path, path: str, columns: Any = None, **options: Any) -> Path:
    """Write an ORC file of these columns (a dict or a table) and return its path."""
    target = location / path
    target.parent.mkdir(parents=True, exist_ok=True)
    table = columns if isinstance(columns, pa.Table) else pa.table(columns or {"x": [1, 2, 3]})
    orc.write_table(table, target, **options)
    return target


def footer_of(*columns: dict[str, Any], writer: int = 0, **fields: Any) -> Any:
    """Return the footer of a file without rows.

    Args:
        columns: For each column its `name`, `kind`, and other fields of the message `Type`;
            `inside` has the columns inside it.
        writer: Number of the writer; 0 is Java's.
        fields: Fields of the message `Footer`.
    """
    footer = FileTail().footer
    footer.writer = writer
    for name, value in fields.items():
        setattr(footer, name, value)
    _add(footer, {"kind": Kind.STRUCT, "inside": columns})
    return footer


def _add(footer: Any, column: dict[str, Any]) -> int:
    at = len(footer.types)
    type_ = footer.types.add(kind=column["kind"])
    for name in ("precision", "scale", "length"):
        if name in column:
            setattr(type_, name, column[name])
    if "catalyst" in column:
        type_.attributes.add(key=b"spark.sql.catalyst.type", value=column["catalyst"].encode())
    for inner in column.get("inside", ()):
        if column["kind"] == Kind.STRUCT:
            footer.types[at].names.append(inner["name"].encode())
        footer.types[at].subtypes.append(_add(footer, inner))
    return at


def file_of(footer: Any, **fields: Any) -> bytes:
    """Return a file without rows, of this footer.

    Args:
        footer: The message, or its bytes as they are in the file.
        fields: Fields of the message `PostScript`.
    """
    content = footer if isinstance(footer, bytes) else footer.SerializeToString()
    postscript = PostScript(
        footer_length=len(content),
        compression=NONE,
        block_size=65_536,
        version=[0, 12],
        writer_version=6,
        magic=b"ORC",
    )
    for name, value in fields.items():
        if name == "version":
            postscript.ClearField("version")
            postscript.version.extend(value)
        else:
            setattr(postscript, name, value)
    end = bytes(postscript.SerializeToString())
    return b"ORC" + content + end + bytes([len(end)])


def edit_statistics(path: Path, change: Callable[[Any], None], *, rotated: bool = False) -> None:
    """Change the statistics of all columns of a file that is not compressed.

    Args:
        path: The file.
        change: Changes a message `Statistics`.
        rotated: Whether columns get each other's statistics, as from Java's first writers.
    """
    content = path.read_bytes()
    end = len(content) - 1
    postscript = PostScript.FromString(content[end - content[end] : end])
    begin = end - content[end] - postscript.footer_length
    footer = type(FileTail().footer).FromString(content[begin : begin + postscript.footer_length])
    for statistics in footer.statistics[1:]:
        change(statistics)
    if rotated:
        originals = [type(one).FromString(one.SerializeToString()) for one in footer.statistics]
        for at, statistics in enumerate(footer.statistics[1:], 1):
            statistics.CopyFrom(originals[1 + at % (len(originals) - 1)])
        footer.writer, postscript.writer_version = 0, 0
    encoded = footer.SerializeToString()
    postscript.footer_length = len(encoded)
    tail = postscript.SerializeToString()
    path.write_bytes(content[:begin] + encoded + tail + bytes([len(tail)]))


def deflated(content: bytes) -> bytes:
    """Return bytes as chunks of a zlib-compressed footer, each of a block of 256 KB."""
    chunks = []
    for start in range(0, len(content), 2**18):
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        block = packer.compress(content[start : start + 2**18]) + packer.flush()
        chunks.append((len(block) * 2).to_bytes(3, "little") + block)
    return b"".join(chunks)
