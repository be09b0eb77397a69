"""The token bucket: a cell's rate budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scrapy_cells.domain.checked import not_negative, positive

if TYPE_CHECKING:
    from scrapy_cells.domain.pacing import Pacing

_TOLERANCE = 1e-6
"""Tokens. Epoch seconds as floats are 2.4e-7 s apart, so what is due at a time can be a
little less than a whole token at that time. The debt is carried on: nothing drifts."""


class TokenBucket:
    """Issues at most ``burst + rate * w`` tokens in every window of *w* seconds.

    A clock that steps back issues nothing, one that leaps forward at most a burst.
    While *pacing* is below 1 it counts for both: the rate is multiplied, and the burst
    is 1.

    :param rate: tokens a second; 0 issues what is there and no more
    :param burst: most tokens at a time, at least 1
    :param now: epoch seconds
    :param tokens: to start with; more than a burst is a burst
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        now: float,
        pacing: Pacing,
        *,
        tokens: float | None = None,
    ) -> None:
        self.rate = not_negative("rate", rate)
        self.burst = _checked_burst(burst)
        self._pacing = pacing
        self._updated = now
        self._full_at = -math.inf
        start = self.burst if tokens is None else tokens
        self.tokens = min(not_negative("tokens", start), self.burst)

    def ready_at(self, now: float) -> float:
        """Return *now* exactly if :meth:`take` would succeed, else a later time.

        ``inf`` if no token will ever come.
        """
        self._refill(now)
        missing = 1.0 - self.tokens
        if missing <= _TOLERANCE:
            return now
        pace = self.rate * self._pacing.factor(now)
        if pace <= 0.0:
            return math.inf
        # a clock that stepped back has to catch up first
        due = max(now, self._updated) + missing / pace
        return max(due, math.nextafter(now, math.inf))

    def take(self, now: float) -> bool:
        """Take one token if there is one."""
        self._refill(now)
        if self.tokens < 1.0 - _TOLERANCE:
            return False
        self.tokens -= 1.0
        return True

    def refund(self, taken_at: float) -> None:
        """Give back the token of a request that was never sent.

        :param taken_at: epoch seconds when it was taken. A bucket that has been full
            since would have lost that token anyway, and gives it to nobody
        """
        if taken_at < self._full_at:
            return
        paced = not self._pacing.done(self._updated)
        self.tokens = min(1.0 if paced else self.burst, self.tokens + 1.0)

    def set_rate(self, rate: float, burst: float, now: float) -> None:
        """Change the budget; what was due until now is issued at the old rate."""
        rate, burst = not_negative("rate", rate), _checked_burst(burst)
        self._refill(now)
        self.rate, self.burst = rate, burst
        self.tokens = min(self.tokens, self.burst)

    def cut(self, now: float) -> None:
        """Apply a pacing that has just started: no more than one token is left."""
        self._refill(now)
        self.tokens = min(self.tokens, 1.0)

    def _refill(self, now: float) -> None:
        if now <= self._updated:
            return
        pacing = self._pacing
        if pacing.done(self._updated):
            self._issue((now - self._updated) * self.rate, self.burst, now)
        else:
            for start, end, factor in pacing.steps(self._updated, now):
                burst = self.burst if factor >= 1.0 else 1.0
                self._issue((end - start) * self.rate * factor, burst, end)
        self._updated = now

    def _issue(self, tokens: float, burst: float, now: float) -> None:
        self.tokens += tokens
        if self.tokens >= burst:
            self.tokens, self._full_at = burst, now


def _checked_burst(burst: float) -> float:
    if positive("burst", burst) < 1.0:
        raise ValueError(f"burst={burst!r}: must be at least 1")
    return float(burst)
