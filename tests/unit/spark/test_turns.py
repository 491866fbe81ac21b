"""Threads that read take turns, unless one takes long."""

from __future__ import annotations

import threading
import time

import pytest

from windrow_tables.executor import turns
from windrow_tables.executor.turns import in_turn


def test_threads_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE_S", 600)
    inside, most = 0, 0

    def read() -> None:
        nonlocal inside, most
        for _ in range(20):
            with in_turn():
                inside += 1
                most = max(most, inside)
                time.sleep(0)
                inside -= 1

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert most == 1


def test_a_thread_does_not_wait_until_a_slow_one_is_done() -> None:
    is_inside = threading.Event()

    def read() -> None:
        with in_turn():
            is_inside.set()

    with in_turn():
        thread = threading.Thread(target=read)
        thread.start()
        assert is_inside.wait(60)
    thread.join()
    with in_turn():
        pass
