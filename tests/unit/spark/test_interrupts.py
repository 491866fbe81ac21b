"""A Ctrl-C ends what it interrupts, even if Python drops it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from windrow_spark.interrupts import kept_interrupts


@pytest.fixture(autouse=True)
def pythons_own_handler() -> Iterator[None]:
    """Install Python's handler, as Spark has its own in processes that run a session."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class _Interrupting:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_a_ctrl_c_that_python_drops_in_a_finalizer_is_raised_at_the_next_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)

    with kept_interrupts() as check:
        check()
        _Interrupting()
        assert [one.exc_type for one in dropped] == [KeyboardInterrupt]
        with pytest.raises(KeyboardInterrupt):
            check()

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_ctrl_c_is_raised_where_it_arrives() -> None:
    with pytest.raises(KeyboardInterrupt), kept_interrupts():
        signal.raise_signal(signal.SIGINT)


def test_an_error_while_a_ctrl_c_is_raised_does_not_hide_it() -> None:
    def call() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise OSError("answer is empty")

    with pytest.raises(KeyboardInterrupt) as raised, kept_interrupts():
        call()

    assert isinstance(raised.value.__cause__, OSError)


def test_another_handler_decides_what_a_ctrl_c_does() -> None:
    pressed: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    with kept_interrupts() as check:
        signal.raise_signal(signal.SIGINT)
        check()

    assert pressed == [signal.SIGINT]


def test_an_error_without_a_ctrl_c_is_raised_unchanged() -> None:
    with pytest.raises(OSError, match="answer is empty"), kept_interrupts():
        raise OSError("answer is empty")


def test_a_process_that_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with kept_interrupts() as check:
            signal.raise_signal(signal.SIGINT)
            check()
    finally:
        signal.signal(signal.SIGINT, before)
