"""Files on S3, HDFS or Google Cloud Storage, opened through `pyarrow.fs`.

Credentials, region and endpoint come from the executors' environment, as for the SDKs of these
stores (`AWS_*`, `GOOGLE_APPLICATION_CREDENTIALS`, `HADOOP_CONF_DIR`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow.fs as pafs

_CONNECT_TIMEOUT_S = 5.0
_REQUEST_TIMEOUT_S = 30.0
_ATTEMPTS = 4
_NS_PER_S = 10**9

# A file system keeps its connections, and Spark its Python workers. Not `lru_cache`, which does
# not travel by value.
_filesystems: dict[tuple[str, str], pafs.FileSystem] = {}


def is_remote(path: str) -> bool:
    """Tell whether a path is a URI, not a path of this machine."""
    return not path.startswith("/")


def remote_status(path: str) -> tuple[int, int]:
    """Return size in bytes and last change in ns of a file, with one request.

    Raises:
        FileNotFoundError: It is not there.
        OSError: It cannot be looked at.
    """
    filesystem, absolute = _located(path)
    info = filesystem.get_file_info(absolute)
    if info.type == pafs.FileType.NotFound:
        raise FileNotFoundError(path)
    # S3 says the time in whole seconds when a file is opened, which is what was planned by.
    is_s3 = path.startswith("s3:")
    return info.size, info.mtime_ns // _NS_PER_S * _NS_PER_S if is_s3 else info.mtime_ns


@contextmanager
def open_remote(path: str) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Open a file; tell its size in bytes and its last change in ns.

    Raises:
        FileNotFoundError: It is not there.
        OSError: It cannot be opened.
    """
    # S3 tells both when a file is opened, which saves a request.
    status = None if path.startswith("s3:") else remote_status(path)
    filesystem, absolute = _located(path)
    with filesystem.open_input_file(absolute) as file:
        if status is None:
            told = file.metadata()["Last-Modified"].decode()
            moment = datetime.strptime(told, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
            status = file.size(), int(moment.timestamp()) * _NS_PER_S
        yield file, status


def _located(path: str) -> tuple[pafs.FileSystem, str]:
    scheme, _, rest = path.partition("://")
    authority, _, below = rest.partition("/")
    key = scheme, authority if scheme == "hdfs" else ""
    filesystem = _filesystems.get(key)
    if filesystem is None:
        filesystem = _filesystems[key] = _connected(*key)
    return filesystem, f"/{below}" if scheme == "hdfs" else rest


def _connected(scheme: str, authority: str) -> pafs.FileSystem:
    if scheme == "s3":
        return pafs.S3FileSystem(
            endpoint_override=os.environ.get("AWS_ENDPOINT_URL_S3")
            or os.environ.get("AWS_ENDPOINT_URL"),
            connect_timeout=_CONNECT_TIMEOUT_S,
            request_timeout=_REQUEST_TIMEOUT_S,
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
        )
    if scheme == "gs":
        return pafs.GcsFileSystem(retry_time_limit=timedelta(seconds=_REQUEST_TIMEOUT_S))
    if scheme == "hdfs":
        host, _, port = authority.partition(":")
        return pafs.HadoopFileSystem(host or "default", int(port or 0))
    raise OSError(f"{scheme}: is not supported by this version of Windrow")
