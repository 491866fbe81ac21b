"""A store of S3 that costs little: objects in memory, and answers that come after a delay.

    python benchmarks/memory_store.py FOLDER SECONDS

Its buckets are the subfolders. It prints its port, lists and reads objects, and takes 0.1 ms of CPU
time for an answer, where `rclone` behind a proxy takes 0.6 ms: with either on the same machine as its
clients, these are measured rather than it.
"""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

try:
    from uvloop import new_event_loop
except ImportError:
    from asyncio import new_event_loop  # type: ignore[assignment]

_END = b"\r\n\r\n"
_CHANGED = "2026-11-01T12:00:00.000Z"
_LAST_MODIFIED = b"Last-Modified: Sun, 01 Nov 2026 12:00:00 GMT\r\n"
_XML = '<?xml version="1.0" encoding="UTF-8"?>'
_MAX_KEYS = "1000"


@contextmanager
def memory_store(folder: Path, delay_s: float) -> Iterator[str]:
    """Serve the folders in `folder` as buckets until the end of the block; yield the endpoint."""
    command = [sys.executable, __file__, str(folder), str(delay_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


class Store:
    """Objects by `bucket/key`, and the answers to requests for them."""

    def __init__(self, folder: Path) -> None:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        self._objects = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        self._etags = {
            key: hashlib.md5(content, usedforsecurity=False).hexdigest()
            for key, content in self._objects.items()
        }

    def answer(self, head: bytes) -> bytes:
        """Return the answer to a request without a body."""
        method, target, _ = head[: head.index(b"\r\n")].decode().split(" ")
        path, _, query = target.partition("?")
        name = unquote(path[1:])
        if name in self._objects:
            return self._object(method, name, _header(head, b"range"))
        bucket, _, key = name.partition("/")
        if method == "GET" and not key:
            page = self._page(bucket, {name: one for name, (one, *_) in parse_qs(query).items()})
            return _answer("200 OK", b"", page.encode())
        error = f"{_XML}<Error><Code>NoSuchKey</Code><Message>not here</Message></Error>"
        return _answer("404 Not Found", b"", b"" if method == "HEAD" else error.encode())

    def _object(self, method: str, name: str, wanted: bytes) -> bytes:
        content = self._objects[name]
        about = b'ETag: "%s"\r\n' % self._etags[name].encode() + _LAST_MODIFIED
        if method == "HEAD":
            return _answer("200 OK", about, b"", len(content))
        if not wanted:
            return _answer("200 OK", about, content)
        first, _, last = wanted.removeprefix(b"bytes=").partition(b"-")
        begin = int(first) if first else max(0, len(content) - int(last))
        end = min(len(content), int(last) + 1) if first and last else len(content)
        about += b"Content-Range: bytes %d-%d/%d\r\n" % (begin, end - 1, len(content))
        return _answer("206 Partial Content", about, content[begin:end])

    def _page(self, bucket: str, query: dict[str, str]) -> str:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token", query.get("start-after", ""))
        entries: dict[str, str] = {}
        for name, content in self._objects.items():
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix):
                continue
            folder, slash, _ = key[len(prefix) :].partition(delimiter or "\0")
            entry = f"{prefix}{folder}{slash}" if slash else key
            if entry <= after or entry in entries:
                continue
            if slash:
                entries[entry] = _element("CommonPrefixes", _element("Prefix", escape(entry)))
                continue
            entries[entry] = _element(
                "Contents",
                _element("Key", escape(key))
                + _element("LastModified", _CHANGED)
                + _element("ETag", f'"{self._etags[name]}"')
                + _element("Size", str(len(content))),
            )
        shown = list(entries)[: int(query.get("max-keys", _MAX_KEYS))]
        more = len(entries) > len(shown)
        inner = _element("IsTruncated", str(more).lower()) + _element("KeyCount", str(len(shown)))
        if more:
            inner += _element("NextContinuationToken", escape(shown[-1]))
        return _XML + _element("ListBucketResult", inner + "".join(entries[one] for one in shown))


class Connection(asyncio.Protocol):
    """A connection of a client."""

    # uvloop's transports are not instances of asyncio's class.
    transport: Any

    def __init__(self, store: Store, loop: asyncio.AbstractEventLoop, delay_s: float) -> None:
        self._store, self._loop, self._delay_s = store, loop, delay_s
        self._got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._got += data
        while (end := self._got.find(_END)) >= 0:
            head, self._got = self._got[: end + 4], self._got[end + 4 :]
            answer = self._store.answer(head)
            self._loop.call_later(self._delay_s, self._send, answer)

    def _send(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(answer)


def _header(head: bytes, name: bytes) -> bytes:
    """Return the value of a header; empty if there is none."""
    begin = head.lower().find(b"\r\n" + name + b":")
    return (
        head[begin + len(name) + 3 : head.index(b"\r\n", begin + 2)].strip() if begin > 0 else b""
    )


def _answer(status: str, about: bytes, body: bytes, length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    first = f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n".encode()
    return first + about + b"\r\n" + body


def _element(name: str, inner: str) -> str:
    return f"<{name}>{inner}</{name}>"


async def _serve(store: Store, delay_s: float) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(store, loop, delay_s), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    new_event_loop().run_until_complete(_serve(Store(Path(sys.argv[1])), float(sys.argv[2])))
