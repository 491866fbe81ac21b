"""Real file systems that run out of space, or fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE_BYTES = 4096


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[Path]:
    """Mount a file system of this size; the test is skipped if mounting is not allowed."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        # A lazy unmount, as something may still be reading.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def nearly_full(disk: Path, pages: int) -> Iterator[None]:
    """Fill a disk except for this number of pages."""
    status = os.statvfs(disk)
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        filler_bytes = status.f_bavail * status.f_frsize - pages * PAGE_BYTES
        os.posix_fallocate(file.fileno(), 0, filler_bytes)
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def failing_disk(folder: Path, size_bytes: int) -> Iterator[Callable[[], None]]:
    """Mount a disk; the function fails it, so that the kernel makes it read-only for good.

    The test is skipped if mounting is not allowed.
    """
    folder.mkdir()
    image = folder.with_suffix(".image")
    image.touch()
    os.truncate(image, size_bytes)

    def run(*command: str | Path) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")

    run("mkfs.ext4", "-q", "-F", image)
    run("mount", "-o", "loop,errors=remount-ro", image, folder)
    try:
        yield lambda: run("mount", "-o", "remount,abort", folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
