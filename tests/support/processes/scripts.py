"""Scripts that run one after another in one process and share its imports, JVM and Spark context.

`python -m tests.support.processes.scripts` runs the scripts named on its standard input, each with the same
`__main__`, `sys.argv` and environment as in a separate process. Scripts in a row that want the same
kind of Spark session get sessions of one context, each with its own settings and views.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.servers import embedded
from tests.support.servers.coordinators import coordinator_process
from tests.support.spark import quick_spark
from windrow import connecting
from windrow_demo import coordinator as coordinators
from windrow_demo import local_session as sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.client import Client

_ROOT = Path(__file__).parents[3]
# Scripts that recognize coordinators by their command line, which those of tests lack.
_KNOWS_COORDINATORS = {"read_cost"}
_start, _embed = coordinators.running_coordinator, connecting.embedded


class Programs:
    """The process that runs the scripts."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, script: Path, *arguments: str) -> tuple[int, str]:
        """Run a script, and return its exit code and its standard error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(script), *arguments]), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, "the process has ended"
        code, errors = json.loads(answer)
        return code, errors


@contextmanager
def one_process(**environment: str) -> Iterator[Programs]:
    """Start a process that runs scripts, with further variables, and stop it at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.processes.scripts"],
        cwd=_ROOT,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Programs(process)
        finally:
            process.kill()


def _outcome(arguments: list[str]) -> tuple[int, str]:
    path, argv, environment = sys.path[:], sys.argv, dict(os.environ)
    # As in a separate process.
    sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
    code = 0
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            if code:
                sys.stderr.write(f"{end.code}\n")
        except Exception:
            traceback.print_exc()
            code = 1
        finally:
            sys.path[:], sys.argv = path, argv
            os.environ.clear()
            os.environ.update(environment)
    return code, errors.getvalue()


class Sessions:
    """Stands in for `windrow_demo.local_session`: gives scripts sessions of one Spark context.

    Starting a context, and its Python workers, takes longer than most scripts' queries. A script
    that wants another master or other settings than the one before gets a new context. A context on
    a cluster ends before the cluster does.
    """

    def __init__(self) -> None:
        self._open = sessions.local_session
        self._kind: object = None
        self._opened = contextlib.ExitStack()
        self._first: SparkSession | None = None

    @contextmanager
    def local_session(
        self,
        app_name: str,
        log: Path,
        *,
        master: str = "local[*]",
        conf: Mapping[str, str] | None = None,
    ) -> Iterator[SparkSession]:
        """See `windrow_demo.local_session`; the context is kept for the next script."""
        kind = (master, dict(conf or {}))
        if self._first is None or self._kind != kind:
            self.close()
            session = self._open(app_name, log, master=master, conf=conf)
            self._first, self._kind = self._opened.enter_context(session), kind
        try:
            yield self._first.newSession()
        finally:
            if not master.startswith("local"):
                self.close()

    def close(self) -> None:
        """Stop the context."""
        self._opened.close()
        self._first = None


@contextmanager
def _coordinator(state_dir: Path, folders: Sequence[Path | str], log: Path) -> Iterator[str]:
    """Do what `windrow_demo.coordinator` does, in a process that need not import anything."""
    if Path(sys.argv[0]).stem in _KNOWS_COORDINATORS:
        with _start(state_dir, folders, log) as url:
            yield url
        return
    (folder,) = folders
    log.parent.mkdir(parents=True, exist_ok=True)
    with coordinator_process(state_dir, folder) as coordinator:
        yield coordinator.url


def _embedded(
    state_dir: str | Path = ".windrow", *, allowed_locations: tuple[str, ...] = ("/",)
) -> Client:
    """Do what `windrow.embedded` does, from a copied database."""
    embedded.upgraded(Path(state_dir))
    return _embed(state_dir, allowed_locations=allowed_locations)


def _share() -> None:
    """Let scripts, which import these names when they run, share what is slow to start."""
    quick_spark.remember_classes()
    sessions.local_session = Sessions().local_session
    coordinators.running_coordinator = _coordinator
    connecting.embedded = _embedded


def main() -> None:
    """Run scripts until there are no more."""
    _share()
    answers = os.fdopen(os.dup(1), "w")
    # Scripts and JVMs must not write to the stream of answers.
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(_outcome(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
