"""Traces of values in folders: in the bytes of files, and in what they hold once decompressed."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def bytes_of(value: str | int) -> bytes:
    """Return how files hold a text, or a 64-bit number."""
    return value.encode() if isinstance(value, str) else value.to_bytes(8, "little", signed=True)


def traces_of(values: Sequence[str | int], *folders: Path) -> list[str]:
    """Return where values are in the files of folders; a number must be too large to occur by chance."""
    needles = {value: bytes_of(value) for value in values}
    places = []
    for folder in folders:
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            for name, content in _contents(path):
                places += [
                    f"{value!r} in {name} of {path}"
                    for value, needle in needles.items()
                    if needle in content
                    or (isinstance(value, int) and str(value).encode() in content)
                ]
    return places


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    raw = path.read_bytes()
    yield "the name", str(path).encode()
    yield "the bytes", raw
    if raw.startswith(b"PAR1"):
        yield "the rows", _plain(pq.read_table(pa.BufferReader(raw)))
    if raw.startswith(b"SQLite"):
        yield from _rows(path)
    if raw.startswith(b"Obj\x01"):
        yield from _inflated(raw)


def _rows(path: Path) -> Iterator[tuple[str, bytes]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, bytes):
                        yield f"a blob of {table}", value
                        with suppress(pa.ArrowException, OSError):
                            yield (
                                f"a stream of {table}",
                                _plain(pa.ipc.open_stream(value).read_all()),
                            )
                        with suppress(zlib.error):
                            yield f"an inflated blob of {table}", zlib.decompress(value)
                        with suppress(pa.ArrowException, OSError):
                            inner = pa.decompress(value, decompressed_size=2**24, codec="zstd")
                            yield f"a blob of {table}, decompressed", inner.to_pybytes()
                    else:
                        yield f"a value of {table}", str(value).encode()


def _plain(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _inflated(avro: bytes) -> Iterator[tuple[str, bytes]]:
    for at in range(len(avro)):
        with suppress(zlib.error):
            inflater = zlib.decompressobj(wbits=-15)
            content = inflater.decompress(avro[at:])
            if len(content) > 64 and inflater.eof:
                yield "a block", content
