"""An S3 store on loopback that delays every request like a distant one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import httptools

_MAX_LISTED_KEYS = 1_000


class SlowStore:
    """A running store: folders directly under `root` are its buckets, and files their objects.

    Attributes:
        root: Folder of the buckets.
        environment: Environment variables that direct clients to the store.
        latency_s: Delay of each answer in seconds; waiting takes no CPU time.
        requests: Method and `bucket/key` of each request so far, listings as `bucket/?prefix`.
    """

    def __init__(self, root: Path, latency_s: float) -> None:
        self.root = root
        self.environment: dict[str, str] = {}
        self.latency_s = latency_s
        self.requests: list[tuple[str, str]] = []

    def data_requests(self) -> Counter[str]:
        """Return the number of requests for each object, of any kind."""
        return Counter(key for _, key in list(self.requests) if "/?" not in key)

    def overwrite(self, key: str, content: bytes) -> None:
        """Replace an object's bytes, with a modification time in a different second."""
        path = self.root / key
        before = path.stat()
        beside = path.with_name(f".{path.name}")
        beside.write_bytes(content)
        os.utime(beside, (before.st_atime + 2, before.st_mtime + 2))
        beside.replace(path)


@contextmanager
def slow_store(root: Path, *, latency_s: float = 0.0) -> Iterator[SlowStore]:
    """Serve a folder in a thread."""
    store = SlowStore(root, latency_s)
    loop = asyncio.new_event_loop()
    # In a thread, since a browser kept open by other tests has a running loop in this one.
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    open_connections: set[_Connection] = set()

    async def begin() -> asyncio.Server:
        return await loop.create_server(
            lambda: _Connection(store, loop, open_connections), "127.0.0.1", 0
        )

    server = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    store.environment = {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "hush",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",
    }

    async def close() -> None:
        server.close()
        for connection in list(open_connections):
            connection.abort()
        # `connection_lost` of each runs in the next turn of the loop.
        await asyncio.sleep(0)

    try:
        yield store
    finally:
        asyncio.run_coroutine_threadsafe(close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Connection(asyncio.Protocol):
    """One persistent connection; clients send the next request after an answer."""

    _transport: asyncio.Transport

    def __init__(
        self, store: SlowStore, loop: asyncio.AbstractEventLoop, connections: set[_Connection]
    ) -> None:
        self._store = store
        self._loop = loop
        self._opened = connections
        self._parser = httptools.HttpRequestParser(self)

    def abort(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._opened.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._opened.discard(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    # --- callbacks of the parser ----------------------------------------------

    def on_message_begin(self) -> None:
        self._url = b""
        self._range = self._if_match = ""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"range":
            self._range = value.decode()
        elif name.lower() == b"if-match":
            self._if_match = value.decode()

    def on_message_complete(self) -> None:
        method = self._parser.get_method().decode()
        url = urlsplit(self._url.decode())
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        name = unquote(url.path).lstrip("/")
        bucket, _, key = name.partition("/")
        self._store.requests.append(
            (method, name if key else f"{bucket}/?{query.get('prefix', '')}")
        )
        self._loop.call_later(
            self._store.latency_s,
            self._answer,
            method,
            bucket,
            key,
            query,
            self._range,
            self._if_match,
        )

    def _answer(
        self, method: str, bucket: str, key: str, query: Any, range_: str, if_match: str
    ) -> None:
        if self._transport.is_closing():
            return
        folder = self._store.root / bucket
        if method not in ("GET", "HEAD"):
            self._send(method, HTTPStatus.METHOD_NOT_ALLOWED, b"")
        elif not key:
            content = listing(folder, query) if folder.is_dir() else _error("NoSuchBucket")
            status = HTTPStatus.OK if folder.is_dir() else HTTPStatus.NOT_FOUND
            self._send(method, status, content, "Content-Type: application/xml")
        elif (folder / key).is_file() and not key.endswith("/"):
            self._send_object(method, folder / key, range_, if_match)
        else:
            self._send(method, HTTPStatus.NOT_FOUND, _error("NoSuchKey"))

    def _send_object(self, method: str, path: Path, range_: str, if_match: str) -> None:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if if_match not in ("", "*", f'"{_etag(status)}"'):
                self._send(method, HTTPStatus.PRECONDITION_FAILED, _error("PreconditionFailed"))
                return
            headers = [
                f"Last-Modified: {formatdate(int(status.st_mtime), usegmt=True)}",
                f'ETag: "{_etag(status)}"',
                "Accept-Ranges: bytes",
                "Content-Type: application/octet-stream",
            ]
            if method == "HEAD":
                self._send(method, HTTPStatus.OK, b"", *headers, length=status.st_size)
                return
            if not range_:
                self._send(method, HTTPStatus.OK, file.read(), *headers)
                return
            first, _, last = range_.removeprefix("bytes=").partition("-")
            # Without a first byte, the range is that many bytes at the end.
            start = int(first) if first else max(0, status.st_size - int(last))
            file.seek(start)
            content = file.read(int(last) - start + 1 if first and last else -1)
        where = f"bytes {start}-{start + len(content) - 1}/{status.st_size}"
        self._send(method, HTTPStatus.PARTIAL_CONTENT, content, *headers, f"Content-Range: {where}")

    def _send(
        self,
        method: str,
        status: HTTPStatus,
        content: bytes,
        *headers: str,
        length: int | None = None,
    ) -> None:
        head = "\r\n".join(
            [
                f"HTTP/1.1 {status.value} {status.phrase}",
                *headers,
                f"Content-Length: {len(content) if length is None else length}",
                "x-amz-request-id: 1",
                "\r\n",
            ]
        )
        self._transport.write(head.encode() + (b"" if method == "HEAD" else content))


def listing(bucket: Path, query: dict[str, str]) -> bytes:
    """Return the answer of ListObjectsV2."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    after = query.get("continuation-token", query.get("start-after", ""))
    limit = min(_MAX_LISTED_KEYS, int(query.get("max-keys", _MAX_LISTED_KEYS)))
    names = sorted(name for name in _names(bucket, prefix, deep=not delimiter) if name > after)
    page, more = names[:limit], len(names) > limit
    parts = []
    for name in page:
        if name.endswith("/"):
            parts.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
            continue
        status = (bucket / name).stat()
        modified_at = datetime.fromtimestamp(int(status.st_mtime), timezone.utc)
        parts.append(
            f"<Contents><Key>{escape(name)}</Key><Size>{status.st_size}</Size>"
            f"<LastModified>{modified_at:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
            f"<ETag>&quot;{_etag(status)}&quot;</ETag>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
        )
    token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{escape(bucket.name)}</Name><Prefix>{escape(prefix)}</Prefix>"
        f"<KeyCount>{len(page)}</KeyCount><MaxKeys>{limit}</MaxKeys>"
        f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}{''.join(parts)}</ListBucketResult>"
    ).encode()


def _names(bucket: Path, prefix: str, *, deep: bool) -> Iterator[str]:
    """Yield keys with a prefix; unless deep, also folders with a trailing slash."""
    folder = bucket / prefix.rpartition("/")[0]
    if not folder.is_dir():
        return
    for entry in os.scandir(folder):
        # A file that is being moved into place.
        if entry.name.startswith("."):
            continue
        name = Path(entry.path).relative_to(bucket).as_posix() + ("/" if entry.is_dir() else "")
        if not name.startswith(prefix):
            continue
        if deep and entry.is_dir():
            yield from _names(bucket, name, deep=True)
        else:
            yield name


def _etag(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_size:x}"


def _error(code: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code></Error>'.encode()
