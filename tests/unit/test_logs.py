"""Secrets are hidden in all log lines, and lines are bounded."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_service.logs import get_logger, logging_to

TOKEN = "wdr_AbCdEf-123_456789012345678901234567890123456"
KNOWN = "correct horse"


def line_of(**said: Any) -> dict[str, Any]:
    stream = io.StringIO()
    with logging_to(stream, level="debug", for_people=False, secrets=[KNOWN]):
        get_logger("windrow_service.test").info("said", **said)
    line: dict[str, Any] = json.loads(stream.getvalue())
    return line


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"sent {TOKEN}, which", TOKEN),
        ("cannot read eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln: bad", "eyJzdWIiOiJhIn0"),
        ("headers: [(b'authorization', b'Bearer abc.def-ghi')]", "abc.def-ghi"),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "dXNlcjpwYXNz"),
        ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("postgresql://user:pa55-word@db:5432/windrow", "pa55-word"),
        ("rediss://:pa55@word@cache/0 is gone", "pa55@word"),
        ("host=db password=pa55-word user=x", "pa55-word"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI/K7MDENG"),
        ("key AKIAIOSFODNN7EXAMPLE is not known", "AKIAIOSFODNN7EXAMPLE"),
        ("https://b/x?X-Amz-Security-Token=IQoJb3JpZ2lu&X-Amz-Date=1", "IQoJb3JpZ2lu"),
        ('{"session_token": "IQoJb3JpZ2lu"}', "IQoJb3JpZ2lu"),
        ("password: pa55-word of the database", "pa55-word"),
        ("password: correcthorse", "correcthorse"),
        ("token=letters and more", "letters"),
        ("bearer abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
        (f"'{KNOWN}' was refused", KNOWN),
    ],
)
def test_a_secret_is_hidden_wherever_it_appears(text: str, secret: str) -> None:
    logged = [
        line_of(text=text),
        line_of(deep={"in": [text, {"deeper": (text,)}]}),
        line_of(made=Exception(text)),
    ]
    stream = io.StringIO()
    with logging_to(stream, level="info", for_people=True, secrets=[KNOWN]):
        logging.getLogger("uvicorn.error").info("%s", text)
        try:
            raise ValueError(text) from OSError(text)
        except ValueError:
            logging.getLogger("uvicorn.error").exception("failed")

    assert secret not in json.dumps(logged) + stream.getvalue()
    assert "hidden" in stream.getvalue()
    assert "Traceback" in stream.getvalue()


@given(before=st.text(max_size=20_000), after=st.text(max_size=20_000), times=st.integers(1, 9))
def test_a_line_is_bounded_and_hides_a_token_in_any_text(
    before: str, after: str, times: int
) -> None:
    line = line_of(text=(before + TOKEN + after) * times)

    assert TOKEN not in line["text"]
    assert len(line["text"]) < 9_000


def test_any_value_named_like_a_secret_is_hidden() -> None:
    line = line_of(headers={"Cookie": "a=b", "x": "y"}, password="1")

    assert line["headers"] == {"Cookie": "[hidden]", "x": "y"}
    assert line["password"] == "[hidden]"


@pytest.mark.parametrize(
    "text",
    [
        "files of s3://bucket/tables: 3 tokens, page 2 of http://host:8080/a@b",
        "the bearer token is not valid here: set WINDROW_TOKEN to a token, which is new",
        "the token contains characters that tokens never have: check WINDROW_TOKEN",
        "no bearer token, no answer: the token: check how it got there",
    ],
)
def test_text_that_is_not_secret_stays(text: str) -> None:
    assert line_of(text=text)["text"] == text


def test_loggers_are_restored_when_the_block_ends() -> None:
    logger = logging.getLogger("windrow_service")
    before = (logger.level, logger.propagate, list(logger.handlers))

    line_of(text="x")

    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_no_logged_text_controls_the_terminal_or_fakes_a_line() -> None:
    hostile = "a\x1b[2J\x9b\r\n\u2028{'event': 'forged'}\u202e\ud800"
    stream = io.StringIO()
    with logging_to(stream, level="info", for_people=True):
        get_logger("windrow_service.test").info("said", path=hostile, many=[hostile])
        logging.getLogger("uvicorn.error").info(hostile)

    assert len(stream.getvalue().splitlines()) == 2
    assert stream.getvalue().replace("\n", "").isprintable()


def test_warnings_of_libraries_are_log_lines_if_the_process_is_the_coordinators() -> None:
    stream = io.StringIO()
    with logging_to(stream, level="info", for_people=False, owns_process=True):
        logging.getLogger("asyncio").info("busy")
        try:
            raise ValueError(TOKEN)
        except ValueError:
            logging.getLogger("asyncio").exception("failed")

    (line,) = map(json.loads, stream.getvalue().splitlines())
    assert line["event"] == "failed"
    assert TOKEN not in stream.getvalue()
