"""The circuit breaker of a cell."""

from __future__ import annotations

import math
from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

from scrapy_cells.domain.checked import positive

if TYPE_CHECKING:
    import random

_JITTER = 0.10
"""Share by which cooldowns differ, so that cells blocked at one time do not all probe
at one instant."""

_FORGIVEN_AFTER = 4.0
"""Cooldowns without a trip after which the level is forgiven."""


class BreakerState(str, Enum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Transition(str, Enum):
    """What a settlement changed."""

    TRIPPED = "tripped"
    PROBE_FAILED = "probe_failed"
    CLOSED = "closed"


class Breaker:
    """Closed until *threshold* failures in a window, then open, then one probe.

    Every change of state starts a new epoch. What belongs to another epoch changes
    nothing: requests in flight at a trip neither prolong nor end it.

    :param threshold: failures
    :param window: seconds; a failure exactly that old no longer counts
    :param cooldown: seconds before the first probe, doubled after each that fails
    :param max_cooldown: seconds
    """

    def __init__(
        self,
        threshold: int,
        window: float,
        cooldown: float,
        max_cooldown: float,
        rng: random.Random,
    ) -> None:
        self.threshold = int(positive("threshold", threshold))
        self.window = positive("window", window)
        self.cooldown = positive("cooldown", cooldown)
        self.max_cooldown = positive("max_cooldown", max_cooldown)
        self.state = BreakerState.CLOSED
        self.until = 0.0
        self.level = 0
        self.epoch = 0
        self.opened_at = 0.0
        self._rng = rng
        self._failures: deque[float] = deque(maxlen=self.threshold)
        self._probe_out = False
        self._lease_until = 0.0
        self._early_until: float | None = None
        self._closed_at = -math.inf

    @property
    def recent_failures(self) -> int:
        """Failures that count towards the next trip."""
        return len(self._failures)

    def ready_at(self, now: float) -> float:
        """Return when the next request may go: *now* if it may."""
        if self.state is BreakerState.CLOSED:
            return now
        if self.state is BreakerState.OPEN:
            return max(now, self.until)
        return max(now, self._lease_until) if self._probe_out else now

    def admit(self, now: float, lease: float) -> bool:
        """Let one request out; only call when :meth:`ready_at` is not in the future.

        :param lease: epoch seconds when a probe that was lost gives way to the next
        :return: whether this one is the probe
        """
        if self.state is BreakerState.CLOSED:
            return False
        if self.state is BreakerState.OPEN:
            self._enter(BreakerState.HALF_OPEN)
        elif self._probe_out:
            # a lost probe: its late settlement must not speak for the new one
            self.epoch += 1
        self._probe_out = True
        self._lease_until = lease
        return True

    def extend_lease(self, until: float) -> None:
        """Let the probe that is out take longer."""
        if self._probe_out:
            self._lease_until = max(self._lease_until, until)

    def settle(
        self, ok: bool | None, epoch: int, is_probe: bool, now: float
    ) -> Transition | None:
        """Hear what became of a request.

        :param ok: ``None`` for neither, as when the request was dropped
        :param epoch: of the time the request was admitted
        """
        if epoch != self.epoch:
            return None
        if self.state is BreakerState.HALF_OPEN:
            return self._settle_probe(ok, now) if is_probe else None
        if self.state is BreakerState.OPEN or ok is None:
            return None
        self._forgive(now)
        if ok:
            self._failures.clear()
            return None
        while self._failures and now - self._failures[0] >= self.window:
            self._failures.popleft()
        self._failures.append(now)
        if len(self._failures) < self.threshold:
            return None
        self._open(now)
        return Transition.TRIPPED

    def empty_window(self) -> None:
        """Forget the failures so far: another cohort answers from now on."""
        self._failures.clear()

    def force_open(self, until: float, now: float) -> None:
        """Keep the breaker open until then, whatever happened."""
        self._enter(BreakerState.OPEN)
        self.until = max(until, now)
        self.opened_at = now
        self._early_until = None

    def force_close(self, now: float) -> None:
        """Close the breaker, whatever happened."""
        self._close(now)

    def probe_early(self, now: float) -> bool:
        """Let an open breaker send its probe now.

        If that fails, it was nobody's turn: the breaker opens for as long as before.
        """
        if self.state is not BreakerState.OPEN or self.until <= now:
            return False
        self._early_until, self.until = self.until, now
        return True

    def _settle_probe(self, ok: bool | None, now: float) -> Transition | None:
        if ok is None:
            self._probe_out = False
            self.epoch += 1
            return None
        if ok:
            self._close(now)
            return Transition.CLOSED
        early, self._early_until = self._early_until, None
        if early is not None and early > now:
            self._enter(BreakerState.OPEN)
            self.until = early
        else:
            self.level += 1
            self._open(now)
        return Transition.PROBE_FAILED

    def _open(self, now: float) -> None:
        if self.state is BreakerState.CLOSED:
            self.opened_at = now
        self._enter(BreakerState.OPEN)
        # beyond the level where the maximum rules, the power would only overflow
        pause = min(self.max_cooldown, self.cooldown * 2.0 ** min(self.level, 60))
        self.until = now + pause * self._rng.uniform(1.0 - _JITTER, 1.0 + _JITTER)

    def _close(self, now: float) -> None:
        self._enter(BreakerState.CLOSED)
        self._closed_at = now
        self._early_until = None

    def _enter(self, state: BreakerState) -> None:
        self.state = state
        self.epoch += 1
        self._failures.clear()
        self._probe_out = False

    def _forgive(self, now: float) -> None:
        if self.level and now - self._closed_at >= _FORGIVEN_AFTER * self.cooldown:
            self.level = 0
