"""Calls that take a while say what they wait for, where somebody sees it, and leave nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from windrow_calls.terminal import waiting as module
from windrow_calls.terminal.waiting import waiting


class Screen:
    """Shows texts, and tells which."""

    def __init__(self) -> None:
        self.text = ""
        self.texts: list[str] = []
        self.changes = threading.Condition()

    @contextmanager
    def __call__(self) -> Iterator[Callable[[str], None]]:
        yield self._show
        self._show("")

    def _show(self, text: str) -> None:
        with self.changes:
            self.text = text
            self.texts.append(text)
            self.changes.notify_all()

    def wait_for(self, text: str) -> None:
        with self.changes:
            assert self.changes.wait_for(lambda: text in self.text, timeout=30)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    screen = Screen()
    monkeypatch.setattr(module, "_PATIENCE_S", 0)
    monkeypatch.setattr(module, "_POLL_S", 0.01)
    monkeypatch.setattr(module, "_display", lambda: screen)
    return screen


def test_a_call_that_takes_a_while_shows_its_steps_and_leaves_nothing(screen: Screen) -> None:
    with waiting("planning") as tell:
        screen.wait_for("planning (")
        tell("packing")
        screen.wait_for("packing (")

    assert screen.text == ""


def test_a_call_within_another_shows_nothing_of_its_own(screen: Screen) -> None:
    with waiting("compacting"), waiting("planning") as tell:
        tell("packing")
        screen.wait_for("compacting (")

    assert not any("planning" in text or "packing" in text for text in screen.texts)


def test_a_quick_call_shows_nothing(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_S", 60)

    with waiting("planning"):
        pass

    assert screen.texts == []


def test_a_call_of_another_thread_shows_nothing(screen: Screen) -> None:
    def work() -> None:
        with waiting("planning"):
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert screen.texts == []


def test_nothing_is_shown_where_nobody_sees_it() -> None:
    assert module._display() is None


def test_an_error_ends_the_display(screen: Screen) -> None:
    def fail() -> None:
        with waiting("planning"):
            screen.wait_for("planning")
            raise ValueError("why")

    with pytest.raises(ValueError, match="why"):
        fail()

    assert screen.text == ""
    with waiting("again"):
        screen.wait_for("again")
