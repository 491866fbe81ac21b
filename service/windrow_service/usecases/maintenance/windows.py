"""Windows of the day in which maintenance may begin, each in a time zone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from windrow_service.usecases.maintenance.errors import InvalidPolicyError


def require_window(text: str) -> None:
    """Make sure that a window has a length and a known time zone.

    Args:
        text: The window, in the form of `WINDOW_PATTERN`.

    Raises:
        InvalidPolicyError: It does not.
    """
    begin, end, zone = _parts(text)
    if begin == end:
        raise InvalidPolicyError(
            f"window {text!r} begins when it ends: leave windows out for the whole day"
        )
    require_zone(zone)


def require_zone(name: str) -> None:
    """Make sure that a time zone is known here.

    Raises:
        InvalidPolicyError: It is not.
    """
    if zone_of(name) is None:
        raise InvalidPolicyError(
            f"there is no time zone {name!r} here: use a name such as Europe/Berlin, or none for UTC"
        )


def zone_of(name: str) -> tzinfo | None:
    """Return a time zone; UTC for an empty name, None if it is not known here."""
    try:
        return ZoneInfo(name) if name not in ("", "UTC") else timezone.utc
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def is_open(windows: Sequence[str], now: datetime) -> bool:
    """Return whether `now` is in one of the windows, or whether there are none.

    A window contains its beginning but not its end, and goes past midnight if it ends earlier than
    it begins. On days when clocks change, it begins and ends by the clock.

    Args:
        windows: Windows that were checked when they were set.
        now: Now, with a time zone.
    """
    return not windows or any(_contains(window, now) for window in windows)


def _contains(window: str, now: datetime) -> bool:
    begin, end, name = _parts(window)
    zone = zone_of(name)
    if zone is None:
        # Another machine knew it.
        return False
    clock = now.astimezone(zone).time()
    return begin <= clock < end if begin < end else clock >= begin or clock < end


def _parts(text: str) -> tuple[time, time, str]:
    hours, _, zone = text.partition(" ")
    begin, _, end = hours.partition("-")
    return time.fromisoformat(begin), time.fromisoformat(end), zone
