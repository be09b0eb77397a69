"""What a cell gives up when it is in trouble, cheapest first.

A session, then the cohort, then hours of its time.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from scrapy_cells.domain.breaker import BreakerState
from scrapy_cells.domain.events import (
    CellQuarantined,
    CohortRetired,
    SessionReplaced,
    SessionRotated,
)
from scrapy_cells.domain.outcome import Outcome

if TYPE_CHECKING:
    from scrapy_cells.domain.cell import Cell
    from scrapy_cells.domain.permit import Permit

_STRIKES = 3
"""Failures in a row after which a session is given up."""

_FORGIVEN_AFTER = 86400.0
"""Seconds in health after which earlier quarantines no longer count."""

_KEYS_IN_TROUBLE = 2
"""Keys that must have failed before a cohort is given up."""

_NO_RESERVE = "no proxy is left in its reserve"

_HEALTHY = 0.9
"""Health from which a cell counts as well enough to rotate a session."""


class Levers:
    """Acts on one cell when its answers are bad.

    Only what present requests of a closed breaker say counts, and only a failure makes
    it act. While the cell is suspended (the fault is everybody's), nothing is given up.
    """

    def __init__(self, cell: Cell, now: float) -> None:
        self._cell = cell
        self.quarantined = False
        self.replaced = 0
        self._quarantines = 0
        self._quarantined_at = now
        self._blocked_generation = -1
        self._trouble: Counter[Outcome] = Counter()
        self._trouble_keys: set[str] = set()
        self._trouble_since = now

    def before_admission(self, now: float) -> bool:
        """Bring the cohort up to date; tell whether there is one to go out with."""
        cell = self._cell
        if self.quarantined and cell.breaker.until <= now:
            # new sessions for a new try, only now that they are needed
            used = cell.cohort.generation == self._blocked_generation
            if used and not self._next_cohort(now):
                self._quarantine(now, _NO_RESERVE)
                return False
        elif cell.cohort.rotation_due(now) and self._is_well(now):
            rotated = cell.cohort.rotate(now)
            if rotated is not None:
                old, new = rotated
                cell.events.append(
                    SessionRotated(cell.id, now, old.id, new.id, retired=(old.id,))
                )
        return True

    def after_settlement(self, permit: Permit, outcome: Outcome, now: float) -> bool:
        """Count an outcome; tell whether the cohort was given up for it."""
        cell = self._cell
        session = permit.session
        if outcome is Outcome.OK:
            session.strikes, session.blame = 0, 1.0
            self._forget_trouble()
            cell.health.apply(outcome)
            return False
        if not outcome.is_failure:
            return False
        if not self._trouble:
            self._trouble_since = now
        self._trouble[outcome] += 1
        if len(self._trouble_keys) < _KEYS_IN_TROUBLE:
            self._trouble_keys.add(permit.key)
        if cell.suspended:
            return False
        session.blame *= cell.health.apply(outcome)
        if outcome.strikes_session:
            session.strikes += 1
        if session.strikes >= _STRIKES and self._replace(permit, outcome, now):
            return False
        if cell.health.score >= cell.options.retire_below:
            return False
        if len(self._trouble_keys) < _KEYS_IN_TROUBLE:
            return False  # one page that always fails is no fault of the cohort
        self._retire(now)
        return True

    def after_failed_probe(self, outcome: Outcome, now: float) -> bool:
        """Send a cell back to quarantine whose fresh cohort was blocked at once."""
        cell = self._cell
        if not outcome.is_block or cell.suspended:
            return False
        if not cell.cohort.fresh(now, cell.options.fresh_window):
            return False
        self._quarantine(now, f"fresh cohort g{cell.cohort.generation} met {outcome}")
        return True

    def after_close(self, now: float) -> None:
        """Let bygones be bygones."""
        self.quarantined = False
        self._forget_trouble()

    def _forget_trouble(self) -> None:
        self._trouble.clear()
        self._trouble_keys.clear()

    def words(self, now: float) -> str:
        """Say what happened since the last fine answer: "3 captchas in 41 s"."""
        parts = [
            f"{count} {_noun(outcome, count)}"
            for outcome, count in self._trouble.most_common()
        ]
        seconds = now - self._trouble_since
        return f"{' and '.join(parts) or 'failures'} in {seconds:.0f} s"

    def _replace(self, permit: Permit, outcome: Outcome, now: float) -> bool:
        """Give up one session, unless it is more than one that is bad."""
        cell = self._cell
        cohort = cell.cohort
        gone = cohort.replaced_within(cell.options.fresh_window, now)
        if gone + 1 > cell.options.sessions / 2:
            return False
        old = permit.session
        new = cohort.replace(old, now)
        if new is None:
            return False
        self.replaced += 1
        cell.health.restore(old.blame)
        why = f"{old.strikes} failures in a row, the last {outcome}"
        cell.events.append(
            SessionReplaced(cell.id, now, old.id, new.id, why, retired=(old.id,))
        )
        return True

    def _retire(self, now: float) -> None:
        cell = self._cell
        health, words = cell.health.score, self.words(now)
        generation = cell.cohort.generation
        if cell.cohort.fresh(now, cell.options.fresh_window):
            self._quarantine(
                now, f"fresh cohort g{generation} was blocked too: {words}"
            )
            return
        retired = tuple(session.id for session in cell.cohort.sessions)
        if not self._next_cohort(now):
            self._quarantine(now, _NO_RESERVE)
            return
        cell.events.append(
            CohortRetired(
                cell.id,
                now,
                generation,
                health,
                words,
                cell.options.pacing_floor,
                cell.options.warmup,
                retired=retired,
            )
        )

    def _next_cohort(self, now: float) -> bool:
        cell = self._cell
        if not cell.cohort.advance(now):
            return False
        cell.health.reset()
        cell.pacing.warm_up(now)
        cell.bucket.cut(now)
        cell.breaker.empty_window()
        self._forget_trouble()
        return True

    def _quarantine(self, now: float, why: str) -> None:
        cell = self._cell
        options = cell.options
        if now - self._quarantined_at >= _FORGIVEN_AFTER and not self.quarantined:
            self._quarantines = 0
        pause = options.quarantine * 2.0 ** min(self._quarantines, 30)
        until = now + min(options.max_quarantine, pause)
        self._quarantines += 1
        self._quarantined_at = until
        self.quarantined = True
        self._blocked_generation = cell.cohort.generation
        cell.breaker.force_open(until, now)
        cell.health.reset()
        self._forget_trouble()
        cell.events.append(
            CellQuarantined(
                cell.id,
                now,
                cell.cohort.generation,
                until,
                why,
                self._quarantines,
                retired=tuple(session.id for session in cell.cohort.sessions),
            )
        )

    def _is_well(self, now: float) -> bool:
        cell = self._cell
        return (
            cell.breaker.state is BreakerState.CLOSED
            and not self._trouble
            and cell.pacing.done(now)
            and cell.health.score >= _HEALTHY
        )


def _noun(outcome: Outcome, count: int) -> str:
    word = _WORDS.get(outcome, str(outcome).replace("_", " "))
    return word if count == 1 else word + "s"


_WORDS = {
    Outcome.BLOCKED: "refusal",
    Outcome.RATE_LIMITED: "rate limit",
    Outcome.CONNECTION: "connection failure",
    Outcome.EMPTY: "empty answer",
}
