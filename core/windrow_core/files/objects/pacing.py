"""How quickly a process sends requests to a store that tells it to slow down."""

from __future__ import annotations

from collections import deque

# A lowered rate is this share of the rate that got through.
_LOWERED = 0.85
# Requests per second by which the rate rises each second; and the share of the rate by which this
# rise grows each second, so that it is soon noticed when a limit is gone because others have ended.
_RISE_PER_S, _QUICKER_RISE = 1.0, 0.02
_FIRST_PER_S, _LEAST_PER_S = 10.0, 1.0
_MEASURED_S = 1.0


class Pace:
    """Additive increase and multiplicative decrease of a rate (Chiu and Jain 1989).

    Requests are spread evenly, since stores count them over short times. Several processes that
    share a limit come to similar rates without knowing of each other: those that send more are
    told more often to slow down.

    Args:
        most_per_s: Maximum number of requests per second; None for no bound.
    """

    def __init__(self, most_per_s: float | None = None) -> None:
        self._most_per_s = most_per_s
        # None until the store objects for the first time.
        self._rate: float | None = None
        # At first nothing is known of the limit, and the rate doubles each second.
        self._is_first = True
        self._rose_at = 0.0
        self._lowered_at = 0.0
        self._sent_at: float | None = None
        self._began_at: float | None = None
        self._answered_at: deque[float] = deque()

    @property
    def rate(self) -> float | None:
        """Requests per second; None for as many as possible."""
        limits = [rate for rate in (self._rate, self._most_per_s) if rate is not None]
        return min(limits, default=None)

    def delay(self, now: float) -> float:
        """Return in how many seconds the next request may be sent; the caller sends it then.

        Args:
            now: Seconds of a monotonic clock.
        """
        if self._began_at is None:
            self._began_at = now
        rate = self.rate
        if rate is None or self._sent_at is None:
            self._sent_at = now
            return 0.0
        at = max(self._sent_at + 1 / rate, now)
        self._sent_at = at
        if at > now and self._rate is not None:
            # A rate that delays no request proves nothing about a higher rate.
            slope = _RISE_PER_S + _QUICKER_RISE * self._rate * (now - self._lowered_at)
            self._rate += (self._rate if self._is_first else slope) * (now - self._rose_at)
        self._rose_at = now
        return at - now

    def answered(self, now: float) -> None:
        """Note that the store has answered a request."""
        self._answered_at.append(now)
        self._forget(now)

    def objected(self, sent_at: float, now: float) -> None:
        """Lower the rate, as the store has objected to a request.

        Args:
            sent_at: When the request was sent. Requests that were sent before the rate was last
                lowered do not lower it again.
            now: As for `delay`.
        """
        if self._rate is not None and sent_at <= self._lowered_at:
            return
        self._forget(now)
        began_at = now if self._began_at is None else self._began_at
        got_through = len(self._answered_at) / min(max(now - began_at, 0.1), _MEASURED_S)
        if self._rate is None:
            # Objections that come before the first answers prove little.
            slower = max(got_through * _LOWERED, _FIRST_PER_S)
        else:
            self._is_first = False
            # There may be few answers because there were few requests.
            slower = max(self._rate / 2, min(self._rate, got_through) * _LOWERED)
        self._rate = max(slower, _LEAST_PER_S)
        self._lowered_at = self._rose_at = now

    def _forget(self, now: float) -> None:
        while self._answered_at and self._answered_at[0] < now - _MEASURED_S:
            self._answered_at.popleft()
