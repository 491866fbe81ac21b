"""Drivers that write to tables in separate processes and can be made to die at a given step.

`python -m tests.support.faults.writers` forks one process per write, which is much faster than starting
Python.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from pydoc import locate
from typing import Any

import windrow
from tests.support.tables import hive
from windrow_calls.errors import WindrowError
from windrow_core.files.objects.requests import Requests
from windrow_core.files.roots import disks, stores
from windrow_core.files.roots.disks import Root
from windrow_core.files.roots.proofs import ANYTHING
from windrow_core.files.roots.stores import StoreRoot
from windrow_core.files.schemes import is_remote
from windrow_core.files.without_pandas import keep_pandas_out
from windrow_core.models import WriteReport
from windrow_tables.commits import begin
from windrow_tables.commits.committing import Commit
from windrow_tables.commits.leases import Lease
from windrow_tables.commits.moving import Moving
from windrow_tables.commits.preparation import Preparation
from windrow_tables.commits.remote_moving import RemoteMoving
from windrow_tables.commits.remote_staging import RemoteStagingFolder
from windrow_tables.commits.staging_folders import StagingFolder
from windrow_tables.commits.table_write import TableWrite

ROOT = Path(__file__).parents[3]

# Each driver would otherwise import these itself, which takes half of its CPU time.
_IMPORTED_LATE = ("anyio", "h11", "idna", "stringprep", "windrow.client", "windrow.connecting")

_HDFS = "hdfs_native.Client"
_CALLS = "get_file_info list_status read create mkdirs rename delete"

# Steps at which a driver can die: functions, and whether before or after it, in commit order.
STEPS: dict[str, tuple[Any, str, str]] = {
    "begun": (Lease, "keep", "after"),
    "staged": (TableWrite, "_admit", "before"),
    "admitted": (TableWrite, "_admit", "after"),
    "linked": (Preparation, "changes", "after"),
    "recorded": (StagingFolder, "record", "after"),
    "exchanging": (Root, "exchange", "before"),
    # Of the write's own first files; then, if folders cannot be exchanged, of each old and new one.
    "placing": (disks, "rename_if_free", "before"),
    # Right after a partition is exchanged or removed.
    "exchanged": (Moving, "_bring_back", "before"),
    "moved in": (Moving, "move_in", "after"),
    "published": (Commit, "_publish", "after"),
    "tidied": (Moving, "finish", "after"),
    # The coordinator has noted that the write is published.
    "noted": (StagingFolder, "remove", "before"),
    "forgotten": (StagingFolder, "clear", "before"),
    "removing": (StagingFolder, "clear", "after"),
}

# Those of tables on stores that differ.
STEPS |= {
    "written down": (RemoteStagingFolder, "record", "after"),
    "renamed": (stores, "_bring", "after"),
    "all renamed": (RemoteMoving, "move_in", "after"),
    "thinned out": (RemoteMoving, "_remove", "after"),
    "cleared": (RemoteMoving, "finish", "after"),
    "ended": (RemoteStagingFolder, "remove", "before"),
    "without intent": (RemoteStagingFolder, "clear", "before"),
    "marked only": (RemoteStagingFolder, "clear", "after"),
    "requested": (Requests, "_repeated", "before"),
    "answered": (Requests, "_repeated", "after"),
    # Those of HDFS. Its package is imported by drivers alone.
    "asked": (_HDFS, _CALLS, "before"),
    "told": (_HDFS, _CALLS, "after"),
    # A file is there, and not complete.
    "unclosed": ("hdfs_native.FileWriter", "close", "before"),
}


def report_of(rows: int) -> WriteReport:
    """Return a report of a write with this number of rows."""
    return WriteReport(
        scheme="exact",
        basis="rows",
        target_file_bytes=1,
        tasks=1,
        rows=rows,
        files=1,
        small_files=0,
        bytes=1,
        largest_file_bytes=1,
        row_hash="0",
        count_seconds=0,
        write_seconds=0,
        check_seconds=0,
        commit_seconds=0,
    )


def stage(folder: str, files: Mapping[str, Sequence[int]]) -> int:
    """Write Parquet files with these ids below a folder, as Spark would; return their row count."""
    for path, ids in files.items():
        if not is_remote(folder):
            hive.write_file(Path(folder) / path, ids)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            file = hive.write_file(Path(scratch) / "file", ids)
            StoreRoot(folder).upload(str(file), path, ANYTHING)
    return sum(map(len, files.values()))


class Writers:
    """A process that forks drivers."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def write(
        self,
        url: str,
        table: str,
        files: Mapping[str, Sequence[int]],
        *,
        mode: str = "append",
        replaces: Sequence[str] = (),
        dies: tuple[str, int] | None = None,
        file_limit: tuple[str, int] | None = None,
        open_limit: tuple[str, int] | None = None,
        kills: tuple[str, int] | None = None,
        pauses: tuple[str, str] | None = None,
        can_exchange: bool = True,
        **options: Any,
    ) -> str:
        """Write files in a driver; return `committed`, `killed`, or the error's name and text.

        Args:
            url: URL of the coordinator.
            table: Name of the table.
            files: Ids of each file, by path relative to the table's location.
            mode: Mode of the write.
            replaces: Paths that the files replace.
            dies: A step, and how often the driver reaches it before it dies there.
            file_limit: A step, and the maximum size of a file in bytes from then on.
            open_limit: A step, and the maximum number of open files from then on.
            kills: A step, and a process to kill at that point.
            pauses: A step, and a file that gets the driver's process id there, before the driver
                suspends itself.
            can_exchange: Whether the file system can exchange folders.
            **options: Options of `begin`.
        """
        order = {
            "url": url,
            "table": table,
            "files": files,
            "mode": mode,
            "replaces": list(replaces),
            "dies": dies,
            "file_limit": file_limit,
            "open_limit": open_limit,
            "kills": kills,
            "pauses": pauses,
            "can_exchange": can_exchange,
            "options": options,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process that forks drivers has ended"
        outcome: str = json.loads(answer)
        return outcome


@contextmanager
def forking_writers() -> Iterator[Writers]:
    """Start a process that forks drivers, and stop it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.faults.writers"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Writers(process)
        finally:
            process.kill()


def at_step(step: str, nth: int, act: Callable[[], object]) -> Callable[[], None]:
    """Call a function when this process reaches a step of a commit for the n-th time.

    Returns:
        A function that undoes this.
    """
    where, names, when = STEPS[step]
    holder = locate(where) if isinstance(where, str) else where
    visits = 0

    def counting(original: Callable[..., Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            nonlocal visits
            if when == "before":
                visits += 1
                if visits == nth:
                    act()
            result = original(*args, **kwargs)
            if when == "after":
                visits += 1
                if visits == nth:
                    act()
            return result

        return instead

    originals = {name: getattr(holder, name) for name in names.split()}
    for name, original in originals.items():
        setattr(holder, name, counting(original))

    def undo() -> None:
        for name, original in originals.items():
            setattr(holder, name, original)

    return undo


def die() -> None:
    """End this process as in a crash."""
    os.kill(os.getpid(), signal.SIGKILL)


def _pause(path: Path) -> None:
    aside = path.with_suffix(".new")
    aside.write_text(str(os.getpid()))
    aside.rename(path)
    os.kill(os.getpid(), signal.SIGSTOP)


def _unsupported(*_: object) -> None:
    raise NotImplementedError


def _limit(kind: int, limit: int) -> None:
    resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


def _drive(order: Mapping[str, Any]) -> str:
    if order["dies"]:
        step, nth = order["dies"]
        at_step(step, nth, die)
    for name, kind in (
        ("file_limit", resource.RLIMIT_FSIZE),
        ("open_limit", resource.RLIMIT_NOFILE),
    ):
        if order[name]:
            step, limit = order[name]
            at_step(step, 1, partial(_limit, kind, limit))
    if order["kills"]:
        step, process = order["kills"]
        at_step(step, 1, lambda: os.kill(process, signal.SIGKILL))
    if order["pauses"]:
        step, path = order["pauses"]
        at_step(step, 1, lambda: _pause(Path(path)))
    if not order["can_exchange"]:
        setattr(disks, "exchange_names", _unsupported)  # noqa: B010 - of another type
    replaces = order["replaces"] or None
    try:
        with (
            windrow.connect(order["url"], attempts=2) as client,
            begin(client, order["table"], order["mode"], **order["options"]) as write,
        ):
            write.commit(report_of(stage(write.folder, order["files"])), replaces)
    except (WindrowError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return "committed"


def _main() -> None:
    for name in _IMPORTED_LATE:
        import_module(name)
    # Each driver would import pandas to write its first file.
    keep_pandas_out()
    for line in sys.stdin:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(writing, _drive(json.loads(line)).encode())
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        with os.fdopen(reading) as answers:
            message = answers.read()
        _, status = os.waitpid(child, 0)
        is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        answer = "killed" if is_killed else message or f"status {status}"
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
