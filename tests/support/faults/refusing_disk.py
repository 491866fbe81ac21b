"""A mounted file system that refuses operations on chosen files, with any error of the system."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import windrow
from tests.support.faults import refusing_disk_process
from tests.support.servers.coordinators import running
from tests.support.tables import hive
from windrow_service.settings import Settings

# Whoever obeys an error with one of these words loses good data.
HARMFUL = re.compile("remove|rewrite|delete|damage|restore|corrupt", re.IGNORECASE)
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class RefusingDisk:
    """The file system.

    Attributes:
        folder: Where it is mounted.
        behind: The folder that it shows; files put there appear at once, and are never refused.
        control: File that tells its process what to refuse.
    """

    folder: Path
    behind: Path
    control: Path
    _refusals: list[tuple[str, str, int, int | None]] = field(default_factory=list)

    @contextmanager
    def refusing(
        self, operation: str, where: str, number: int, *, below: int | None = None
    ) -> Iterator[None]:
        """Refuse an operation on some paths.

        Args:
            operation: `open`, `read`, `write`, `create`, `list`, `stat`, `mkdir`, `rename`, `link`,
                `unlink`, `fsync` and so on.
            where: Regular expression of a part of the path; for `rename`, of the folder that the
                source is in.
            number: The error's number.
            below: Refuse only reads and writes that begin below this offset.
        """
        self._tell([(operation, where, number, below)])
        try:
            yield
        finally:
            self._tell([])

    def _tell(self, refusals: list[tuple[str, str, int, int | None]]) -> None:
        aside = self.control.with_suffix(".new")
        aside.write_text(json.dumps(refusals))
        aside.replace(self.control)


@contextmanager
def refusing_disk(folder: Path) -> Iterator[RefusingDisk]:
    """Mount such a file system in a new folder; the test is skipped if that is not allowed."""
    folder.mkdir()
    disk = RefusingDisk(folder / "disk", folder / "behind", folder / "refusals.json")
    disk.folder.mkdir()
    disk.behind.mkdir()
    disk.control.write_text("[]")
    try:
        device = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"no file system can be made here: {error}")
    options = f"fd={device},rootmode=40755,user_id=0,group_id=0,allow_other"
    target = os.fsencode(disk.folder)
    if _libc.mount(b"refusing", target, b"fuse", 0, options.encode()):
        os.close(device)
        pytest.skip(f"no file system can be mounted here: {os.strerror(ctypes.get_errno())}")
    script = refusing_disk_process.__file__
    paths = map(str, (disk.behind, disk.control, device, disk.folder))
    command = [sys.executable, "-SE", script, *paths]
    process = subprocess.Popen(
        # Signals that end the tests must not end it before it has unmounted.
        command,
        pass_fds=[device],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(device)
    with process:
        try:
            yield disk
        finally:
            assert process.stdin is not None
            # The process unmounts it, as it does if this one is killed.
            process.stdin.close()


@contextmanager
def events_on(disk: RefusingDisk, state_dir: Path) -> Iterator[windrow.Client]:
    """Yield a client of a coordinator whose table `events` is on the disk."""
    hive.write_events(disk.folder / "events")
    settings = Settings(state_dir=state_dir, allowed_locations=(str(disk.folder),))
    with running(settings) as url, windrow.connect(url) as client:
        client.register_table("events", str(disk.folder / "events"))
        client.refresh("events")
        yield client
