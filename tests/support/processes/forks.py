"""Separate processes of tests, forked from one that has imported the modules of coordinators.

Importing them anew would take each process seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

TIMEOUT_S = 60.0

_forking = multiprocessing.get_context("forkserver")
_imported_late = (
    "aiosqlite",
    "anyio._backends._asyncio",
    "httptools",
    "tests.support.faults.killed_drivers",
    "tests.support.processes.loaded_pages",
    "tests.support.processes.served_once",
    "uvloop",
    # Last, as it freezes the objects of the imports before it.
    "tests.support.processes.frozen",
)
_forking.set_forkserver_preload(["__main__", __name__, *_imported_late])


@dataclass(frozen=True, slots=True)
class Forked:
    """A forked process, with the methods of `subprocess.Popen`."""

    process: BaseProcess

    @property
    def pid(self) -> int:
        """Return its process id."""
        pid = self.process.pid
        assert pid is not None
        return pid

    def poll(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self.process.exitcode

    def wait(self, timeout: float = TIMEOUT_S) -> int:
        """Wait until it has ended, and return its exit code."""
        self.process.join(timeout)
        code = self.process.exitcode
        assert code is not None, "the process did not end in time"
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.process.terminate()

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self.process.kill()


def fork(
    call: Callable[..., None],
    *arguments: Any,
    output: Path,
    errors: Path | None = None,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Forked:
    """Start a process that calls a function of a module.

    Args:
        call: Function to call; it is sent by its name.
        *arguments: Its arguments.
        output: File to append its output to.
        errors: File for its errors; by default the same.
        cwd: Its working directory.
        environment: Its environment; by default that of this process.
    """
    files = (output, errors or output)
    for file in files:
        file.touch()
    variables = dict(os.environ if environment is None else environment)
    process = _forking.Process(target=_call, args=(files, cwd, variables, call, arguments))
    process.start()
    return Forked(process)


def fork_module(module: str, *arguments: str, **where: Any) -> Forked:
    """Start the equivalent of `python -m module …`; `where` is as in `fork`."""
    return fork(_run_module, module, arguments, **where)


def run_forked(
    cwd: Path, module: str, *arguments: str, **environment: str
) -> CompletedProcess[str]:
    """Run the equivalent of `python -m module …` until it ends by itself, without its imports."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "stdout"), Path(folder, "stderr")
        process = fork_module(
            module,
            *arguments,
            output=output,
            errors=errors,
            cwd=cwd,
            environment=os.environ | environment,
        )
        try:
            code = process.wait()
        finally:
            process.kill()
        command = [module, *arguments]
        return CompletedProcess(command, code, output.read_text(), errors.read_text())


def _call(
    files: tuple[Path, Path],
    cwd: Path | None,
    environment: Mapping[str, str],
    call: Callable[..., None],
    arguments: tuple[Any, ...],
) -> None:
    for number, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    # As in a process started by a shell, even if the parent ignores Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if cwd is not None:
        os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    call(*arguments)


def _run_module(module: str, arguments: tuple[str, ...]) -> None:
    sys.argv = [module, *arguments]
    import_module(f"{module}.__main__").main()
