"""What a call in a terminal or a notebook waits for, once it takes a while; gone when it is done."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from importlib import import_module
from typing import Any, TypeAlias

from rich.console import Console
from rich.text import Text

# Shows a text until the end of the block; yields a function that replaces it.
Display: TypeAlias = AbstractContextManager[Callable[[str], None]]

_PATIENCE_S = 2.0
_POLL_S = 0.2
_showing = threading.Lock()


@contextmanager
def waiting(text: str) -> Iterator[Callable[[str], None]]:
    """Show a text with the seconds so far, once the block has taken two of them.

    Yields:
        A function that replaces the text, such as by the step that has begun.
    """
    display = _display()
    # Calls within calls, and those of other threads, are not what somebody is waiting for.
    is_alone = threading.current_thread() is threading.main_thread() and _showing.acquire(False)
    if display is None or not is_alone:
        if is_alone:
            _showing.release()
        yield lambda _: None
        return
    texts = [text]
    end = threading.Event()
    thread = threading.Thread(target=_show, args=(display, texts, end), name="windrow-waiting")
    thread.daemon = True
    thread.start()
    try:
        yield texts.append
    finally:
        end.set()
        thread.join()
        _showing.release()


def _show(display: Callable[[], Display], texts: list[str], end: threading.Event) -> None:
    began_s = time.monotonic()
    if end.wait(_PATIENCE_S):
        return
    with display() as show:
        while True:
            show(f"{texts[-1]} ({time.monotonic() - began_s:.0f} s)")
            if end.wait(_POLL_S):
                return


def _display() -> Callable[[], Display] | None:
    """Return what shows a text here; None if nobody sees it."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and type(shell).__name__ == "ZMQInteractiveShell":
        return _in_notebook
    return _in_terminal if sys.stderr.isatty() else None


@contextmanager
def _in_terminal() -> Iterator[Callable[[str], None]]:
    with Console(stderr=True, highlight=False).status("") as status:
        yield lambda text: status.update(Text(text))


@contextmanager
def _in_notebook() -> Iterator[Callable[[str], None]]:
    page = import_module("IPython.display")
    handle: Any = page.display(page.HTML(""), display_id=True)
    try:
        yield lambda text: handle.update(page.HTML(f"<i>{escape(text)}</i>"))
    finally:
        handle.update(page.HTML(""))
