"""Work in processes that can be lost."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from windrow_service.inventory.footers.isolation import IsolatedExecutor, LostProcessError


def test_results_and_errors_are_returned() -> None:
    with IsolatedExecutor(1) as executor:
        assert executor.submit(divmod, 7, 2).result() == (3, 1)
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 7, 0).result()


def test_tasks_run_in_other_processes_which_are_reused() -> None:
    with IsolatedExecutor(1) as executor:
        first, second = executor.submit(os.getpid).result(), executor.submit(os.getpid).result()

    assert first == second != os.getpid()


def test_there_are_no_more_processes_than_requested() -> None:
    with IsolatedExecutor(2) as executor:
        futures = [executor.submit(os.getpid) for _ in range(20)]
        found = {future.result() for future in futures}

    assert len(found) <= 2


def test_a_lost_process_loses_one_task_and_reports_its_last_output() -> None:
    with IsolatedExecutor(1) as executor:
        lost = executor.submit(os._exit, 3)
        other = executor.submit(divmod, 7, 2)

        with pytest.raises(LostProcessError, match="exit status 3"):
            lost.result()
        assert other.result() == (3, 1)
        with pytest.raises(LostProcessError, match="oh no"):
            executor.submit(exec, "import os, sys; os.write(2, b'oh no'); os.abort()").result()


def test_the_output_of_a_task_is_not_mistaken_for_its_result() -> None:
    with IsolatedExecutor(1) as executor:
        assert executor.submit(print, "not an answer").result() is None
        assert executor.submit(os.write, 1, b"nor this").result() == 8


def test_processes_end_with_the_executor() -> None:
    with IsolatedExecutor(1) as executor:
        process = executor.submit(os.getpid).result()

    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_the_next_executor_has_a_new_process_with_the_current_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for value in ("first", "second"):
        monkeypatch.setenv("WINDROW_TEST_VALUE", value)
        with IsolatedExecutor(1) as executor:
            template = executor.submit(_parent_of_parent).result()
            found.append((executor.submit(os.getpid).result(), template))
            assert executor.submit(os.getenv, "WINDROW_TEST_VALUE").result() == value

    (first, template), (second, same) = found
    assert first != second
    assert template == same


@pytest.mark.slow
def test_a_lost_template_is_started_again() -> None:
    with IsolatedExecutor(1) as executor:
        template = executor.submit(_parent_of_parent).result()
    os.kill(template, signal.SIGKILL)
    os.waitid(os.P_PID, template, os.WEXITED | os.WNOWAIT)

    with IsolatedExecutor(1) as executor:
        assert executor.submit(divmod, 7, 2).result() == (3, 1)


def _parent_of_parent() -> int:
    status = Path(f"/proc/{os.getppid()}/status").read_text()
    return int(status.partition("PPid:")[2].split()[0])


def test_the_callers_main_script_does_not_run_again() -> None:
    with IsolatedExecutor(1) as executor:
        code = "__import__('sys').modules['__main__'].__spec__ is None"
        assert executor.submit(eval, code).result() is True
        assert executor.submit(eval, "__import__('sys').argv").result() == ["-c"]


def test_reading_footers_imports_neither_pandas_nor_the_rest_of_the_service() -> None:
    with IsolatedExecutor(1) as executor:
        executor.submit(pa.array, ["a"]).result()
        found = executor.submit(eval, "set(__import__('sys').modules)").result()

    assert "windrow_core.files.chunks" in found
    assert not found & {"pandas", "pydantic", "sqlglot"}
    ours = {name for name in found if name.startswith("windrow_service.")}
    rooms = ("windrow_service.avro", "windrow_service.delta", "windrow_service.orc")
    assert {name for name in ours if not name.startswith(rooms)} == set()


def test_a_process_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")

    with IsolatedExecutor(1) as executor:
        started = executor.submit(os.getpid)

        with pytest.raises(RuntimeError, match="cannot start /bin/false"):
            started.result()


def test_tasks_may_be_submitted_by_many_threads() -> None:
    results: list[int] = []
    with IsolatedExecutor(2) as executor:

        def work(number: int) -> None:
            results.append(executor.submit(abs, -number).result())

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sorted(results) == list(range(8))
