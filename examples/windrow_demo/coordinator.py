"""Running a coordinator in a separate process, on a free loopback port."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from windrow_calls.installed import require_service
from windrow_demo.errors import DemoError

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 10.0
_POLL_S = 0.05
_URL = re.compile(rb"http://127\.0\.0\.1:[1-9]\d*")


@contextmanager
def running_coordinator(state_dir: Path, folders: Sequence[Path | str], log: Path) -> Iterator[str]:
    """Run `windrow serve` until the block ends; yields its URL once it is ready.

    Args:
        state_dir: Folder of the coordinator's database.
        folders: Folders that may hold tables, or their URIs.
        log: File for the coordinator's output.

    Raises:
        ServiceNotInstalledError: The `[service]` extra is not installed.
        DemoError: The coordinator ended, or was not ready in time.
    """
    require_service()
    command = [sys.executable, "-m", "windrow_cli", "serve", "--host", "127.0.0.1", "--port", "0"]
    command += ["--no-require-tokens", "--state-dir", str(state_dir)]
    for folder in folders:
        command += ["--allow", str(folder)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield _wait_until_ready(process, log)
    finally:
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    give_up_at = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < give_up_at:
        if process.poll() is not None:
            lines = log.read_text(errors="replace").strip().splitlines()
            raise _failed(lines[-1] if lines else "it printed nothing", log)
        match = _URL.search(log.read_bytes())
        if match is not None and _is_ready(url := match[0].decode()):
            return url
        time.sleep(_POLL_S)
    raise _failed(f"it was not ready after {_START_TIMEOUT_S:.0f} s", log)


def _failed(reason: str, log: Path) -> DemoError:
    return DemoError(f"the coordinator did not start ({reason}): see {log}")


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=5.0).is_success
    except httpx.TransportError:
        return False
