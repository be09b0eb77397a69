"""The factor on a budget while trust is won back: warm-up and ramp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy_cells.domain.checked import not_negative, positive, share

if TYPE_CHECKING:
    from collections.abc import Iterator


class Pacing:
    """A factor in [floor, 1] that only grows between two resets.

    A warm-up (new cohort) holds the floor, then steps to 1. A ramp (closed breaker)
    rises in a line from the floor to 1, as Envoy's slow start does. With both, the
    smaller factor counts.

    :param floor: the lowest factor, above 0
    :param warmup: seconds
    :param ramp: seconds
    """

    def __init__(self, floor: float, warmup: float, ramp: float) -> None:
        self.floor = positive("floor", share("floor", floor))
        self.warmup = not_negative("warmup", warmup)
        self.ramp = not_negative("ramp", ramp)
        self._warm_at: float | None = None
        self._ramp_from: float | None = None

    def warm_up(self, now: float) -> None:
        """Hold the floor for a warm-up from *now* on."""
        self._warm_at = now + self.warmup

    def start_ramp(self, now: float) -> None:
        """Rise from the floor, from *now* on."""
        self._ramp_from = now

    def reset(self) -> None:
        """Go back to full pace."""
        self._warm_at = self._ramp_from = None

    def factor(self, now: float) -> float:
        """Return the factor at *now*; before a start it is the floor."""
        factor = 1.0
        if self._warm_at is not None and now < self._warm_at:
            factor = self.floor
        if self._ramp_from is not None and self.ramp > 0:
            passed = now - self._ramp_from
            if passed < self.ramp:
                risen = max(0.0, passed) / self.ramp
                factor = min(factor, self.floor + (1.0 - self.floor) * risen)
        return factor

    def done(self, now: float) -> bool:
        """Tell whether the full pace is reached."""
        # nothing is forgotten here: the bucket may still have to account for the past
        return self.factor(now) >= 1.0

    def steps(self, start: float, end: float) -> Iterator[tuple[float, float, float]]:
        """Cut an interval where the factor jumps.

        :return: ``(start, end, factor at start)``; as the factor never falls, the one
            at the start never issues too much
        """
        warm_at = self._warm_at
        if warm_at is not None and start < warm_at < end:
            yield start, warm_at, self.factor(start)
            start = warm_at
        yield start, end, self.factor(start)
