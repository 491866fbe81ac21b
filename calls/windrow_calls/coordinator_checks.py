"""Checks of a coordinator by those who call it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime

from windrow_calls.diagnosis import Check, State
from windrow_calls.errors import CoordinatorUnreachableError, ProblemError, WindrowError
from windrow_calls.transport import Transport, read_answer
from windrow_core.cards import duration_text
from windrow_core.models import Health, ServiceConfig
from windrow_core.version import __version__

# Tokens of issuers and leases of work allow for less.
_MOST_SKEW_S = 30.0
_UNAUTHENTICATED, _FORBIDDEN = 401, 403
# What is wrong with a part of a coordinator, and what mends it.
_HEALTH = {
    ("database", "full"): ("failure", "the disk of its database is full", "make room on it"),
    ("cache", "unavailable"): (
        "warning",
        "Redis does not answer: plans place no files at the hosts that cache them",
        "start Redis, or correct WINDROW_REDIS_URL of the coordinator",
    ),
    ("clock", "skewed"): (
        "warning",
        "its clock differs from its database's",
        "synchronise the clock of its machine (NTP)",
    ),
}


def coordinator_checks(transport: Transport) -> Iterator[Check]:
    """Check the coordinator that requests are sent to; nothing is changed.

    Args:
        transport: Carries the requests; each is sent in as few attempts as it allows.
    """
    try:
        answer = transport.call("GET", "/health/live")
        read_answer(Health, answer)
    except CoordinatorUnreachableError as error:
        yield Check(
            "coordinator",
            "failure",
            f"{transport.url} does not answer: {error.reason}",
            "start one with `windrow serve --allow /data`, or set WINDROW_URL",
            "start/install",
        )
        return
    except WindrowError as error:
        yield Check("coordinator", "failure", str(error), "set WINDROW_URL to a coordinator's URL")
        return
    yield Check("coordinator", "ok", f"{transport.url} answers")
    yield from _clock(answer.headers.get("Date"), datetime.now(timezone.utc))
    yield from _parts(transport)
    yield from _configuration(transport)
    yield _page(
        transport,
        "guide",
        "/guide/index.html",
        "the coordinator has no guide",
        "install it from a wheel, or run `make docs` in its clone",
    )
    yield _page(
        transport,
        "engines",
        "/iceberg/v1/config",
        "other engines cannot read its tables: it serves no Iceberg catalog",
        "set WINDROW_ENGINES__METADATA_FOLDER of the coordinator",
        "how-to/engines",
    )


def _clock(date: str | None, now: datetime) -> Iterator[Check]:
    if date is None:
        return
    skew_s = abs((parsedate_to_datetime(date) - now).total_seconds())
    if skew_s > _MOST_SKEW_S:
        yield Check(
            "clock",
            "warning",
            f"this machine's clock and the coordinator's differ by {duration_text(skew_s)}",
            "synchronise both (NTP)",
        )
    else:
        yield Check("clock", "ok", "this machine and the coordinator agree on the time")


def _parts(transport: Transport) -> Iterator[Check]:
    """Check what the coordinator itself stands on."""
    try:
        health = read_answer(Health, transport.call("GET", "/health/ready"))
    except WindrowError as error:
        page = "how-to/deploy"
        yield Check("database", "failure", str(error), "start or repair the database", page)
        return
    for part, status in health.checks.items():
        state, result, remedy = _HEALTH.get((part, status), ("ok", "", ""))
        if state == "ok":
            yield Check(part if part != "clock" else "database's clock", "ok", "works")
        else:
            name: State = "failure" if state == "failure" else "warning"
            yield Check(part, name, result, remedy, "how-to/deploy")


def _configuration(transport: Transport) -> Iterator[Check]:
    try:
        config = read_answer(ServiceConfig, transport.call("GET", "/config"))
    except ProblemError as error:
        if error.problem.status == _UNAUTHENTICATED:
            yield Check(
                "token",
                "failure",
                str(error),
                "set WINDROW_TOKEN, or WINDROW_TOKEN_FILE, to a token of `windrow token create`",
                "explain/who-sees-what",
            )
        elif error.problem.status == _FORBIDDEN:
            yield Check("token", "warning", str(error), "ask for a token with more rights")
        else:
            yield Check("configuration", "failure", str(error), "read the coordinator's log")
        return
    yield Check("token", "ok", "the coordinator accepts this caller")
    if config.version == __version__:
        yield Check("version", "ok", f"both sides are {__version__}")
    else:
        yield Check(
            "version",
            "warning",
            f"this is {__version__}, and the coordinator {config.version}",
            f"install {config.version} here, or upgrade the coordinator",
            "how-to/upgrade",
        )
    if config.allowed_locations:
        places = ", ".join(config.allowed_locations)
        yield Check("locations", "ok", f"tables may be below {places}")
    else:
        yield Check(
            "locations",
            "failure",
            "no location is allowed for tables",
            "start the coordinator with `--allow /data`, or set WINDROW_ALLOWED_LOCATIONS",
            "explain/security",
        )


def _page(
    transport: Transport, subject: str, path: str, absence: str, remedy: str, page: str = ""
) -> Check:
    """Check a path that only some coordinators have."""
    try:
        transport.call("GET", path)
    except WindrowError:
        # Where there is no guide, a page for people says so.
        return Check(subject, "warning", absence, remedy, page)
    return Check(subject, "ok", f"served at {transport.url.rstrip('/')}{path}")
