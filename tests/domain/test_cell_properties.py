"""A cell under any order of requests, answers, losses and clocks that jump."""

from __future__ import annotations

import math
import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from scrapy_cells.domain.breaker import BreakerState
from scrapy_cells.domain.cell import Cell, CellOptions
from scrapy_cells.domain.outcome import Outcome
from tests.domain.cells import NOW, Source

CLOSED, OPEN, HALF_OPEN = BreakerState
BURST = 5.0
SLACK = 1e-4
"""Tokens: what the tolerance of single takes and the size of a float can add up to."""

OPTIONS = st.fixed_dictionaries(
    {
        "rate": st.sampled_from([0.05, 0.5, 20.0]),
        "concurrency": st.integers(1, 4),
        "sessions": st.integers(1, 4),
        "breaker_threshold": st.sampled_from([1, 2, 8]),
        "fresh_window": st.sampled_from([0.0, 600.0]),
        "session_rotation": st.sampled_from([0.0, 100.0]),
        "retire_below": st.sampled_from([0.0, 0.5, 0.9]),
    }
)


class CellMachine(RuleBasedStateMachine):
    """Requests that are sent or not, and settled late, twice or never."""

    @initialize(
        options=OPTIONS,
        reserve=st.sampled_from([math.inf, 4, 6, 9]),
        seed=st.integers(0, 9),
    )
    def start(self, options, reserve, seed):
        self.cell = Cell(
            "07",
            CellOptions(burst=BURST, **options),
            Source(reserve),
            random.Random(seed),
            NOW,
        )
        self.now = self.latest = NOW
        self.permits = []
        self.bypassed = False
        self.paid: list[tuple[float, int]] = []  # when, and +1 or -1 for a refund

    def tick(self):
        self.latest = max(self.latest, self.now)

    def state(self):
        """Return all that a late outcome must leave alone."""
        cell = self.cell
        return (
            cell.health.score,
            cell.breaker.state,
            cell.breaker.until,
            cell.breaker.level,
            cell.breaker.epoch,
            cell.breaker.recent_failures,
            cell.cohort.generation,
            cell.quarantined,
            [(s.id, s.strikes, s.blame) for s in cell.cohort.sessions],
        )

    @rule(
        key=st.integers(0, 9),
        avoid=st.booleans(),
        bypass=st.sampled_from([False, False, False, True]),
    )
    def admit(self, key, avoid, bypass):
        self.tick()
        cell = self.cell
        state, until = cell.breaker.state, cell.breaker.until
        ready = cell.ready_at(self.now, bypass=bypass)
        avoided = [cell.cohort.sessions[0].id] if avoid else []
        outstanding, counts = list(cell.outstanding.values()), +cell.counts
        permit = cell.admit(self.now, str(key), avoid=avoided, bypass=bypass)
        self.note_refunds(outstanding, counts)
        if permit is None:
            assert ready > self.now or cell.quarantined or state is HALF_OPEN
            return
        assert state is not OPEN or until <= self.now
        assert cell.hold_until <= self.now
        assert state is HALF_OPEN or ready == self.now
        assert permit.is_probe == (state is not CLOSED)
        assert permit.session in cell.cohort.sessions
        self.bypassed = self.bypassed or bypass
        self.permits.append(permit)
        self.paid.append((self.latest, 1))

    def note_refunds(self, outstanding, counts):
        gone = [permit for permit in outstanding if permit.settled]
        unsent = sum(not permit.sent for permit in gone)
        assert self.cell.counts.total() - counts.total() == len(gone)
        self.paid.extend([(self.latest, -1)] * unsent)

    def pick(self, data):
        return self.permits[data.draw(st.integers(0, len(self.permits) - 1))]

    @precondition(lambda self: self.permits)
    @rule(data=st.data(), timeout=st.sampled_from([1.0, 20.0, 300.0]))
    def mark_sent(self, data, timeout):
        self.cell.mark_sent(self.pick(data), self.now, timeout)

    @precondition(lambda self: self.permits)
    @rule(data=st.data())
    def left_wire(self, data):
        self.cell.left_wire(self.pick(data))

    @precondition(lambda self: self.permits)
    @rule(data=st.data())
    def mark_received(self, data):
        self.cell.mark_received(self.pick(data))

    @precondition(lambda self: self.permits)
    @rule(
        data=st.data(),
        outcome=st.sampled_from(Outcome),
        retry_after=st.sampled_from([None, None, None, 5.0, 7200.0]),
    )
    def settle(self, data, outcome, retry_after):
        self.tick()
        cell, permit = self.cell, self.pick(data)
        before, was_settled, hold = self.state(), permit.settled, cell.hold_until
        late = permit.epoch != cell.breaker.epoch or (
            not permit.is_probe and cell.cohort.get(permit.session.id) is None
        )
        first = cell.settle(permit, outcome, self.now, retry_after=retry_after)
        assert first is not was_settled
        if late or was_settled:
            assert self.state() == before
        if was_settled:
            assert cell.hold_until == hold
        elif outcome is Outcome.NEUTRAL and not permit.sent:
            self.paid.append((self.latest, -1))

    @rule(outcome=st.sampled_from([Outcome.OK, Outcome.CAPTCHA, Outcome.TIMEOUT]))
    def whole_request(self, outcome):
        self.tick()
        outstanding, counts = list(self.cell.outstanding.values()), +self.cell.counts
        permit = self.cell.admit(self.now, "key")
        self.note_refunds(outstanding, counts)
        if permit is not None:
            self.permits.append(permit)
            self.paid.append((self.latest, 1))
            self.cell.mark_sent(permit, self.now, 20)
            assert self.cell.settle(permit, outcome, self.now)

    @rule()
    def sweep(self):
        self.tick()
        for permit in self.cell.sweep(self.now):
            assert permit.lease_until <= self.now
            if not permit.sent:
                self.paid.append((self.latest, -1))
        assert all(p.lease_until > self.now for p in self.cell.outstanding.values())

    @rule(step=st.sampled_from([0.5, 10.0, 25.0, 700.0, 20000.0, 1e5, -5.0, -1e4]))
    def clock(self, step):
        self.now += step

    @rule()
    def wait(self):
        ready = self.cell.ready_at(self.now)
        if ready < math.inf:
            self.now = ready

    @rule(seconds=st.sampled_from([-10.0, 100.0, 5000.0]))
    def force_open(self, seconds):
        self.cell.force_open(self.now + seconds, self.now)

    @rule()
    def force_close(self):
        self.cell.force_close(self.now)

    @rule()
    def probe_early(self):
        self.cell.probe_early(self.now)

    @rule(suspended=st.booleans())
    def outage(self, suspended):
        self.cell.suspended = suspended

    @invariant()
    def nothing_is_lost(self):
        cell = self.cell
        assert cell.admitted == cell.counts.total() + len(cell.outstanding)
        assert cell.admitted == len(self.permits)
        assert cell.requests_sent == sum(permit.sent for permit in self.permits)

    @invariant()
    def places_are_counted(self):
        cell = self.cell
        held = sum(permit.holds_place for permit in self.permits)
        assert cell.in_flight == held >= 0
        if not self.bypassed:
            assert held <= cell.options.concurrency

    @invariant()
    def one_probe_at_most(self):
        cell = self.cell
        if cell.breaker.state is HALF_OPEN:
            present = [
                permit
                for permit in cell.outstanding.values()
                if permit.epoch == cell.breaker.epoch
            ]
            assert len(present) <= 1

    @invariant()
    def numbers_stay_in_bounds(self):
        cell = self.cell
        assert 0.0 <= cell.health.score <= 1.0
        assert -SLACK <= cell.bucket.tokens <= BURST
        assert len(cell.cohort.sessions) == cell.options.sessions

    @invariant()
    def sessions_are_different(self):
        sessions = self.cell.cohort.sessions
        assert len({session.id for session in sessions}) == len(sessions)
        assert len({session.draw.proxy for session in sessions}) == len(sessions)

    @invariant()
    def asking_is_pure(self):
        cell, before = self.cell, self.state()
        ready = cell.ready_at(self.now)
        assert ready >= self.now
        assert ready == cell.ready_at(self.now)
        assert self.now <= cell.closed_until(self.now) < math.inf
        assert self.state() == before
        if cell.breaker.state is OPEN:
            assert ready >= cell.breaker.until

    @invariant()
    def news_can_be_read(self):
        for event in self.cell.take_events():
            assert event.describe().startswith("cell 07 ")
            assert "secret" not in repr(event) + event.describe()
        assert "secret" not in repr(self.cell.snapshot(self.now))

    def teardown(self):
        if hasattr(self, "cell"):
            self.check_budget()
            self.check_it_goes_on()

    def check_budget(self):
        """No window saw more than a burst and its rate, less what came back in it."""
        for index, (start, _) in enumerate(self.paid):
            used = 0
            for at, change in self.paid[index:]:
                used += change
                allowed = BURST + self.cell.options.rate * (at - start)
                assert used <= allowed + SLACK

    def check_it_goes_on(self):
        """Time alone, and a sweep, bring every cell back to work."""
        cell = self.cell
        cell.suspended = False
        now = max([self.latest, *(p.lease_until for p in cell.outstanding.values())])
        for _ in range(200):
            cell.sweep(now)
            ready = cell.ready_at(now)
            assert math.isfinite(ready)
            now = ready
            permit = cell.admit(now, "key")
            if permit is not None:
                return
        raise AssertionError("never admitted again")


CellMachine.TestCase.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None
)
TestCellInAnyOrder = CellMachine.TestCase
