"""The coordinator's log: bounded lines, without secrets, written by a separate thread."""

from __future__ import annotations

import logging
import queue
import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import QueueHandler, QueueListener
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, ExcInfo, Processor, WrappedLogger

HIDDEN = "[hidden]"
_LOGGERS = ("windrow_service", "uvicorn")
# People read the lines, and collectors truncate long ones.
_MAX_TEXT = 8_000
_MAX_FRAMES = 20
_MAX_ITEMS = 100
# Most characters searched for secrets, because searching takes time.
_MAX_SEARCHED = 32_000
_MAX_WAITING_LINES = 10_000
# Hiding shorter values would hide half of every line.
_MIN_SECRET = 6

# The end of a name that marks a secret; without unbounded repetition, to keep matching fast.
_SECRET_NAME = (
    r"authorization|cookie|api-key|passwd|password|pwd|secret[a-z_-]{0,32}|token|signature"
    r"|credential|access_key(?:_id)?"
)
# What stands between such a name and its value: in Python's tuples, and elsewhere.
_QUOTED = r"['\"]\s*,\s*b?['\"]"
_ASSIGNED = r"['\"]?\s*(?:[:=]|%3D)\s*(?:b?['\"])?"
# Sentences go on after a colon, as in "the token: check how it got there".
_NO_SENTENCE = r"(?!(?-i:(?<=: )[a-z]{1,12} [A-Za-z`]))"
_NO_WORD = r"(?!(?-i:[a-z]{1,14}(?:[\s.,:;]|$)))"
_PATTERNS = (
    # Windrow's tokens, signed tokens, AWS keys, passwords in URLs, the value of any name that marks
    # a secret (in Python, JSON, headers, query strings and settings), and other bearer tokens.
    (re.compile(r"wdr_[A-Za-z0-9_-]+"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), HIDDEN),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (re.compile(r"(://[^\s/:@'\"]*:)[^\s/'\"]+@"), rf"\1{HIDDEN}@"),
    (
        re.compile(
            rf"(?i)({_SECRET_NAME})"
            rf"((?:{_QUOTED}|{_ASSIGNED}){_NO_SENTENCE})"
            r"(?:(?:basic|bearer)\s+)?[^\s'\"&,;(){}\[\]]+"
        ),
        rf"\1\2{HIDDEN}",
    ),
    (re.compile(rf"(?i)\b(bearer\s+){_NO_WORD}[A-Za-z0-9._~+/=-]+"), rf"\1{HIDDEN}"),
)
_NAMED_SECRET = re.compile(rf"(?i){_SECRET_NAME}")


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger that never passes on local variables.

    It does not depend on how structlog is configured in the process, which may be a caller's.
    """
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            _render_exception,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logger


@contextmanager
def logging_to(
    stream: TextIO,
    *,
    level: str,
    for_people: bool,
    secrets: Iterable[str] = (),
    owns_process: bool = False,
) -> Iterator[None]:
    """Write the log of the coordinator and its HTTP server, until the end of the block.

    Args:
        stream: Where to write; if nobody reads it, lines are dropped and nothing blocks.
        level: The lowest level that is written: `debug`, `info`, `warning` or `error`.
        for_people: Whether lines are for a terminal; otherwise each line is JSON.
        secrets: Values that must never be written.
        owns_process: Whether to write warnings of other libraries, too.
    """
    lines: queue.Queue[logging.LogRecord] = queue.Queue(_MAX_WAITING_LINES)
    handler = _DroppingHandler(lines)
    handler.setFormatter(_formatter(for_people=for_people, secrets=secrets))
    # Write in a thread: a pipe that nobody reads must not block callers.
    writer = QueueListener(lines, logging.StreamHandler(stream))
    writer.start()
    levels = {logging.getLogger(name): level.upper() for name in _LOGGERS}
    if owns_process:
        levels[logging.getLogger()] = "WARNING"
    before = [(logger, logger.level, logger.propagate) for logger in levels]
    for logger, least in levels.items():
        logger.addHandler(handler)
        logger.setLevel(least)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, level_before, propagate in before:
            logger.removeHandler(handler)
            logger.setLevel(level_before)
            logger.propagate = propagate
        writer.stop()


class _DroppingHandler(QueueHandler):
    """Passes lines to the writing thread, and drops them while it is far behind."""

    def enqueue(self, record: logging.LogRecord) -> None:
        """Put a line into the queue if there is room."""
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            return


def _formatter(*, for_people: bool, secrets: Iterable[str]) -> logging.Formatter:
    renderer = (
        structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
        if for_people
        else structlog.processors.JSONRenderer()
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_render_exception],
        processors=[
            structlog.stdlib.add_log_level,
            _add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _hiding(tuple(secret for secret in secrets if len(secret) >= _MIN_SECRET)),
            *((_escape_controls,) if for_people else ()),
            renderer,
        ],
    )


def _add_logger_name(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    event["logger"] = event["_record"].name
    return event


def _render_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace the exception with its truncated traceback, without local variables."""
    error = event.pop("exc_info", None)
    if error:
        event["exception"] = _traceback(error)
    return event


def _traceback(error: bool | BaseException | ExcInfo) -> str:
    if isinstance(error, BaseException):
        error = (type(error), error, error.__traceback__)
    elif error is True:
        error = cast(ExcInfo, sys.exc_info())
    assert isinstance(error, tuple)
    stack = traceback.TracebackException(*error, limit=-_MAX_FRAMES)
    return _cut("".join(stack.format()), _MAX_SEARCHED)


def _hiding(secrets: tuple[str, ...]) -> Processor:
    """Return a processor that truncates every value, and hides secrets and similar text."""

    def hidden(text: str) -> str:
        text = _cut(text, _MAX_SEARCHED)
        for secret in secrets:
            text = text.replace(secret, HIDDEN)
        for pattern, instead in _PATTERNS:
            text = pattern.sub(instead, text)
        return _cut(text, _MAX_TEXT)

    def clean(value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, Mapping):
            items = list(value.items())[:_MAX_ITEMS]
            return {
                hidden(str(name)): HIDDEN if _NAMED_SECRET.search(str(name)) else clean(inner)
                for name, inner in items
            }
        if isinstance(value, list | tuple):
            return [clean(inner) for inner in value[:_MAX_ITEMS]]
        return hidden(value if isinstance(value, str) else repr(value))

    def processor(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return cast(EventDict, clean(event))

    return processor


def _escape_controls(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Escape characters that a terminal would obey; only exceptions keep their line breaks."""
    return {
        name: _escaped(value, exempt="\n\t" if name == "exception" else "")
        if isinstance(value, str)
        else value
        for name, value in event.items()
    }


def _escaped(text: str, *, exempt: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in exempt
        else char.encode("unicode_escape", "backslashreplace").decode()
        for char in text
    )


def _cut(text: str, most: int) -> str:
    """Leave out the middle of a text that is too long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"
