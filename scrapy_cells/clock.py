"""The one place that reads the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Anything that tells the time."""

    def now(self) -> float:
        """Return seconds since the epoch; never less than the last answer."""


class SystemClock:
    """Epoch seconds that cannot jump.

    Anchored once to the monotonic clock, so that a corrected system clock neither
    opens a breaker nor fills a bucket, and still comparable with times that an
    earlier process stored.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return self._offset + time.monotonic()
