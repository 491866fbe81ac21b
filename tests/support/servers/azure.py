"""Azure's store of objects on loopback: Azurite, Microsoft's own emulator, from the npm registry."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

# What the emulator is called, and has as its key, wherever it runs.
ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_CACHE = Path(sys.prefix) / "azurite"
_PACKAGE = "azurite@3.37.0"
_FETCH_TIMEOUT_S, _START_TIMEOUT_S = 600.0, 120.0
_URL = re.compile(r"successfully listens on (http://\S+)")
_VERSION = "2021-08-06"


@dataclass(frozen=True, slots=True)
class Azure:
    """A running server.

    Attributes:
        endpoint: URL of its account.
    """

    endpoint: str

    def create(self, container: str) -> str:
        """Make a container, and return its location."""
        resource, date = f"/{ACCOUNT}/{container}", formatdate(usegmt=True)
        headers = f"x-ms-date:{date}\nx-ms-version:{_VERSION}"
        # The path of the emulator begins with the account, which the text names once more.
        text = "PUT" + "\n" * 12 + f"{headers}\n/{ACCOUNT}{resource}\nrestype:container"
        digest = hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)
        request = Request(
            f"{self.endpoint}/{container}?restype=container",
            method="PUT",
            headers={
                "x-ms-date": date,
                "x-ms-version": _VERSION,
                "Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}",
            },
        )
        urlopen(request).close()
        return f"abfss://{container}@{ACCOUNT}.dfs.core.windows.net"

    def store(self, container: str) -> Any:
        """Return `obstore`'s store of a container."""
        from obstore.store import AzureStore

        return AzureStore(
            container,
            account_name=ACCOUNT,
            account_key=_KEY,
            endpoint=self.endpoint,
            client_options={"allow_http": True},
        )

    def upload(self, folder: Path, container: str, prefix: str) -> None:
        """Put the files of a folder into a container."""
        import obstore

        store = self.store(container)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                obstore.put(store, f"{prefix}/{path.relative_to(folder).as_posix()}", path)


@contextmanager
def azure_server(folder: Path) -> Iterator[Azure]:
    """Run the server, and direct this process and its children to it by their environment.

    Args:
        folder: Where it writes its log; objects are in memory.
    """
    log = folder / "azurite.log"
    command = [
        "node",
        str(_emulator()),
        *("--blobHost", "127.0.0.1", "--blobPort", "0"),
        *("--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"),
    ]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=folder, stdout=output, stderr=output) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        try:
            endpoint = f"{_url(server, log)}/{ACCOUNT}"
            patch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
            patch.setenv("AZURE_STORAGE_ACCOUNT_KEY", _KEY)
            yield Azure(endpoint)
        finally:
            server.terminate()


def _url(server: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while (match := _URL.search(log.read_text())) is None:
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    return match[1]


def _emulator() -> Path:
    """Return its program, fetched on first use; the test is skipped if it cannot be had."""
    _CACHE.mkdir(exist_ok=True)
    program = _CACHE / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    with (_CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists() and not _is_fetched():
            pytest.skip("azurite cannot be fetched: Node.js or the npm registry is out of reach")
    return program


def _is_fetched() -> bool:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        return False
    options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(_CACHE)]
    try:
        done = subprocess.run(
            [npm, "install", *options, _PACKAGE], capture_output=True, timeout=_FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
