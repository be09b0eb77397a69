"""The cell: everything that decides whether and how a request goes out."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from scrapy_cells.domain.breaker import Breaker, BreakerState, Transition
from scrapy_cells.domain.bucket import TokenBucket
from scrapy_cells.domain.cohort import Cohort
from scrapy_cells.domain.events import CellClosed, CellHeld, CellOpened, CellProbed
from scrapy_cells.domain.health import Health
from scrapy_cells.domain.levers import Levers
from scrapy_cells.domain.options import CellOptions
from scrapy_cells.domain.outcome import Outcome
from scrapy_cells.domain.pacing import Pacing
from scrapy_cells.domain.permit import Permit
from scrapy_cells.domain.retry import RetryBudget
from scrapy_cells.domain.snapshot import CellSnapshot

if TYPE_CHECKING:
    import random
    from collections.abc import Collection

    from scrapy_cells.domain.cohort import SessionSource
    from scrapy_cells.domain.events import CellEvent

__all__ = ["Cell", "CellOptions", "CellSnapshot"]

_MARGIN = 5.0
"""Seconds by which a lease outlasts the request's own timeout."""


class Cell:
    """One unit of failure. Shares nothing with any other.

    Plain and synchronous; time comes in as epoch seconds, and what happened comes out
    of :meth:`take_events`.

    :param source: where sessions come from
    :param tokens: to start with, ``None`` for a whole burst
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - what it is called everywhere else
        options: CellOptions,
        source: SessionSource,
        rng: random.Random,
        now: float,
        *,
        tokens: float | None = None,
    ) -> None:
        self.id = id
        self.options = options
        self.pacing = Pacing(options.pacing_floor, options.warmup, options.ramp)
        self.bucket = TokenBucket(
            options.rate, options.burst, now, self.pacing, tokens=tokens
        )
        self.breaker = Breaker(
            options.breaker_threshold,
            options.breaker_window,
            options.breaker_cooldown,
            options.breaker_max_cooldown,
            rng,
        )
        self.health = Health(
            options.captcha_penalty, options.failure_penalty, options.recovery
        )
        self.cohort = Cohort(
            id, options.sessions, source, now, rotation=options.session_rotation
        )
        self.retry_budget = RetryBudget()
        self.levers = Levers(self, now)
        self.suspended = False
        self.hold_until = 0.0
        self.counts: Counter[Outcome] = Counter()
        self.requests_sent = 0
        self.admitted = 0
        self.repeated_settlements = 0
        self.in_flight = 0
        self.outstanding: dict[str, Permit] = {}
        self._on_wire = 0
        self._hold_epoch = 0
        self._one_first = False
        self.events: list[CellEvent] = []

    # When

    def ready_at(self, now: float, *, bypass: bool = False) -> float:
        """Return when the next request may go: *now*, later, or ``inf`` for parked.

        A parked cell gets ready by a settlement, not by time.

        :param bypass: for a request that did not come through the scheduler: of the
            places only those on the wire count, since the others may be held by
            requests that wait for this very one (robots.txt)
        """
        taken = self._on_wire if bypass else self.in_flight
        if taken >= self.options.concurrency:
            return math.inf
        if self._one_first and self.outstanding and not bypass:
            return math.inf
        breaker = self.breaker
        when = now if breaker.state is BreakerState.CLOSED else breaker.ready_at(now)
        return max(when, self.hold_until, self.bucket.ready_at(now))

    def closed_until(self, now: float) -> float:
        """Return *now* for an open cell, else when breaker and hold let one out.

        Budget and places do not count: they are for moments, not for good.
        """
        if self.breaker.state is BreakerState.OPEN:
            return max(now, self.breaker.until, self.hold_until)
        return max(now, self.hold_until)

    # Admission

    def admit(
        self,
        now: float,
        key: str,
        *,
        session: str | None = None,
        avoid: Collection[str] = (),
        bypass: bool = False,
    ) -> Permit | None:
        """Let one request out, if :meth:`ready_at` says so; else ``None``.

        :param session: id of the session to use if it is still there
        :param avoid: ids of sessions to use only if there are no others
        """
        if self.breaker.state is BreakerState.HALF_OPEN:
            self.sweep(now)  # a lost probe is heard before the next one goes
        if self.ready_at(now, bypass=bypass) > now:
            return None
        if not self.levers.before_admission(now):
            return None
        self.bucket.take(now)
        lease = now + self.options.timeout + _MARGIN
        is_probe = self.breaker.admit(now, lease)
        self.admitted += 1
        permit = Permit(
            f"{self.id}:{self.admitted}",
            self.id,
            self.cohort.pick(key, session, avoid),
            key,
            epoch=self.breaker.epoch,
            hold_epoch=self._hold_epoch,
            admitted_at=now,
            lease_until=lease,
            is_probe=is_probe,
            bypass=bypass,
        )
        self.outstanding[permit.id] = permit
        self.in_flight += 1
        return permit

    def mark_sent(self, permit: Permit, now: float, timeout: float) -> None:
        """Take note that the request goes on the wire.

        :param timeout: seconds it may take
        """
        if permit.settled or permit.sent:
            return
        permit.sent = permit.on_wire = True
        permit.lease_until = now + timeout + _MARGIN
        self._on_wire += 1
        self.requests_sent += 1
        if permit.is_probe and permit.epoch == self.breaker.epoch:
            self.breaker.extend_lease(permit.lease_until)

    def left_wire(self, permit: Permit) -> None:
        """Give the bulkhead place back, once."""
        if permit.on_wire:
            permit.on_wire = False
            self._on_wire -= 1
        if permit.holds_place:
            permit.holds_place = False
            self.in_flight -= 1

    def mark_received(self, permit: Permit) -> None:
        """Take note of an answer: from now on the request cannot time out."""
        permit.received = True

    # Settlement

    def settle(
        self,
        permit: Permit,
        outcome: Outcome,
        now: float,
        *,
        retry_after: float | None = None,
    ) -> bool:
        """Hear what became of a request, once.

        :param retry_after: seconds the site asked to wait
        :return: whether it was the first settlement; others change nothing
        """
        if permit.settled:
            self.repeated_settlements += 1
            return False
        permit.settled = True
        self.left_wire(permit)
        self.outstanding.pop(permit.id, None)
        if outcome is Outcome.NEUTRAL and not permit.sent:
            self.bucket.refund(permit.admitted_at)
        self.counts[outcome] += 1
        self.health.note(outcome, now)
        if retry_after is not None and outcome.is_failure:
            self._hold(permit, outcome, now, retry_after)
            return True
        if outcome is Outcome.OK and permit.hold_epoch == self._hold_epoch:
            self._one_first = False
        self._count(permit, outcome, now)
        return True

    def _count(self, permit: Permit, outcome: Outcome, now: float) -> None:
        breaker = self.breaker
        if not permit.is_probe and self.cohort.get(permit.session.id) is None:
            return  # late news of a session that is gone
        if self._is_present(permit):
            if self.levers.after_settlement(permit, outcome, now):
                return  # the cohort is gone; its last failure is not the next one's
        elif (
            permit.is_probe
            and permit.epoch == breaker.epoch
            and outcome is not Outcome.NEUTRAL
        ):
            self.events.append(CellProbed(self.id, now, str(outcome)))
        ok = None if outcome is Outcome.NEUTRAL else not outcome.is_failure
        since = breaker.opened_at
        transition = breaker.settle(ok, permit.epoch, permit.is_probe, now)
        if transition is Transition.TRIPPED:
            self._opened(now, self.levers.words(now))
        elif transition is Transition.PROBE_FAILED:
            if not self.levers.after_failed_probe(outcome, now):
                self._opened(now, f"its probe ended in {outcome}")
        elif transition is Transition.CLOSED:
            self._closed(now, since)

    def _is_present(self, permit: Permit) -> bool:
        """Tell whether an outcome is news of the cohort in its present state."""
        return (
            self.breaker.state is BreakerState.CLOSED
            and permit.epoch == self.breaker.epoch
            and self.cohort.get(permit.session.id) is not None
        )

    def _opened(self, now: float, why: str) -> None:
        breaker = self.breaker
        self.events.append(CellOpened(self.id, now, why, breaker.until, breaker.level))

    def _closed(self, now: float, since: float) -> None:
        self.levers.after_close(now)
        self.pacing.start_ramp(now)
        self.bucket.cut(now)
        self.events.append(
            CellClosed(
                self.id,
                now,
                now - since,
                self.options.pacing_floor,
                self.options.ramp,
            )
        )

    def _hold(
        self, permit: Permit, outcome: Outcome, now: float, seconds: float
    ) -> None:
        """Do as the site asked: nobody goes for so long, and then one first."""
        until = now + seconds
        if permit.is_probe and permit.epoch == self.breaker.epoch:
            # the way is not free, but it was told when it will be
            self.breaker.settle(None, permit.epoch, True, now)
        if permit.hold_epoch == self._hold_epoch:
            self._hold_epoch += 1
            self._one_first = True
            self.hold_until = max(self.hold_until, until)
            self.events.append(CellHeld(self.id, now, self.hold_until))
            if self._is_present(permit):
                self.levers.after_settlement(permit, outcome, now)
        else:  # it was under way before the hold: the same event told again
            self.hold_until = max(self.hold_until, until)

    def sweep(self, now: float) -> list[Permit]:
        """Settle the permits whose lease has ended: their requests have vanished."""
        ended = [p for p in self.outstanding.values() if p.lease_until <= now]
        for permit in ended:
            lost = permit.sent and not permit.received
            self.settle(permit, Outcome.TIMEOUT if lost else Outcome.NEUTRAL, now)
        return ended

    # From outside

    def force_open(self, until: float, now: float) -> None:
        """Close the cell off until then (epoch seconds)."""
        self.breaker.force_open(until, now)
        self._opened(now, "forced open")

    def force_close(self, now: float) -> None:
        """Open the cell for business, slowly."""
        if self.breaker.state is not BreakerState.CLOSED:
            since = self.breaker.opened_at
            self.breaker.force_close(now)
            self._closed(now, since)

    def probe_early(self, now: float) -> bool:
        """Let an open cell send its probe now; not one in quarantine."""
        return not self.quarantined and self.breaker.probe_early(now)

    @property
    def quarantined(self) -> bool:
        return self.levers.quarantined

    def take_events(self) -> list[CellEvent]:
        """Return what happened since the last call."""
        if not self.events:
            return []
        events, self.events = self.events, []
        return events

    def snapshot(self, now: float) -> CellSnapshot:
        """Return what there is to see."""
        factor = self.pacing.factor(now)
        state: str = self.breaker.state.value
        until: float | None = None
        if self.quarantined:
            state, until = "quarantined", self.breaker.until
        elif self.breaker.state is BreakerState.OPEN:
            until = self.breaker.until
        elif self.hold_until > now:
            state, until = "held", self.hold_until
        elif self.breaker.state is BreakerState.CLOSED and factor < 1.0:
            state = "warming"
        return CellSnapshot(
            id=self.id,
            state=state,
            until=until,
            health=self.health.score,
            generation=self.cohort.generation,
            factor=factor,
            in_flight=self.in_flight,
            requests=self.requests_sent,
            outcomes={str(outcome): n for outcome, n in self.counts.items()},
            replaced=self.levers.replaced,
        )
