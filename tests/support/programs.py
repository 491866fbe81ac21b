"""Scripts that run one after another in one process and share its imports and JVM.

`python -m tests.support.programs` runs the scripts named on its standard input, each with the same
`__main__`, `sys.argv` and environment as in a separate process.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[2]


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
        code, said = json.loads(answer)
        return code, said


@contextmanager
def one_process() -> Iterator[Programs]:
    """Start a process that runs scripts, and stop it at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.programs"],
        cwd=_ROOT,
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
    with contextlib.redirect_stderr(io.StringIO()) as said:
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
    return code, said.getvalue()


def main() -> None:
    """Run scripts until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    # Scripts and JVMs must not write to the stream of answers.
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(_outcome(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
