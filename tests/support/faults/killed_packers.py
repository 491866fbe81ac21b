"""Packers in processes of their own, which signals end or stop at steps."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import windrow
from tests.support.processes.forks import Forked, fork
from tests.support.tables.packs import published_now
from windrow_core.files.roots import disks
from windrow_tables.packs import making, packing, writing

# What a packer does, in order: before or after which call the signal comes.
STEPS: dict[str, tuple[Any, str, bool]] = {
    "a file is read": (making, "read_whole", False),
    "its rows are taken": (writing.PackWriter, "add", False),
    "rows are written": (writing.PackWriter, "_write", False),
    "the pack is compared": (writing.PackWriter, "finish", False),
    "it lies there aside": (disks, "rename_if_free", True),
    "it has its name": (disks, "rename_if_free", False),
    "it has its rights": (making, "give", False),
    "it is to be published": (windrow.Client, "publish_pack", True),
    "it is published": (windrow.Client, "publish_pack", False),
}


@contextmanager
def packer(
    url: str, table: str, folder: Path, signals: Mapping[str, int], lease_s: int = 60
) -> Iterator[Forked]:
    """Pack a table in another process, which sends itself signals.

    Args:
        url: URL of the coordinator.
        table: The table, which was refreshed.
        folder: A folder for what the process prints.
        signals: The signals by steps, of `STEPS`; without any, the process comes to its end.
        lease_s: How long the coordinator believes that it is alive.
    """
    log = folder / f"{os.urandom(4).hex()}.log"
    process = fork(_pack, url, table, dict(signals), lease_s, output=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def _pack(url: str, table: str, signals: Mapping[str, int], lease_s: int) -> None:
    packing._LEASE_S = lease_s
    for step, number in signals.items():
        owner, name, is_before = STEPS[step]
        setattr(owner, name, _signalling(getattr(owner, name), number, is_before=is_before))
    with windrow.connect(url) as client:
        published_now(client, table)


def _signalling(call: Callable[..., Any], number: int, *, is_before: bool) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if is_before:
            os.kill(os.getpid(), number)
        result = call(*arguments, **options)
        if not is_before:
            os.kill(os.getpid(), number)
        return result

    return wrapped
