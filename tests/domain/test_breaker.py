"""The circuit breaker: every state with every event, and any order of them."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from scrapy_cells.domain.breaker import Breaker, BreakerState, Transition

CLOSED, OPEN, HALF_OPEN = BreakerState
NOW = 1.8e9
COOLDOWN = 900.0
LEASE = 25.0


def new_breaker(seed: int = 1, threshold: int = 3) -> Breaker:
    return Breaker(threshold, 120, COOLDOWN, 14400, random.Random(seed))


def trip(breaker: Breaker, now: float) -> Transition | None:
    transition = None
    for _ in range(breaker.threshold):
        transition = breaker.settle(False, breaker.epoch, False, now)
    return transition


def closed() -> Breaker:
    return new_breaker()


def opened() -> Breaker:
    breaker = new_breaker()
    trip(breaker, NOW)
    return breaker


def half_open() -> Breaker:
    breaker = opened()
    breaker.admit(breaker.until, breaker.until + LEASE)
    return breaker


MAKERS = {CLOSED: closed, OPEN: opened, HALF_OPEN: half_open}

# Events: each says what it does to a breaker; the probe's are those of the present one.
EVENTS = {
    "ok": lambda b, now: b.settle(True, b.epoch, False, now),
    "failure": lambda b, now: b.settle(False, b.epoch, False, now),
    "neutral": lambda b, now: b.settle(None, b.epoch, False, now),
    "threshold failures": trip,
    "probe ok": lambda b, now: b.settle(True, b.epoch, True, now),
    "probe failure": lambda b, now: b.settle(False, b.epoch, True, now),
    "probe neutral": lambda b, now: b.settle(None, b.epoch, True, now),
    "late ok": lambda b, now: b.settle(True, b.epoch - 1, False, now),
    "late failure": lambda b, now: b.settle(False, b.epoch - 1, False, now),
    "late probe ok": lambda b, now: b.settle(True, b.epoch - 1, True, now),
    "late probe failure": lambda b, now: b.settle(False, b.epoch - 1, True, now),
    "extend_lease": lambda b, now: b.extend_lease(now + 99),
    "force_open": lambda b, now: b.force_open(now + 5000, now),
    "force_close": lambda b, now: b.force_close(now),
    "probe_early": lambda b, now: b.probe_early(now),
    "empty_window": lambda b, now: b.empty_window(),
}

# (state, event): (state after it, what it returns). Whatever stands in no row keeps the
# state and returns None.
TABLE = {
    (CLOSED, "threshold failures"): (OPEN, Transition.TRIPPED),
    (CLOSED, "force_open"): (OPEN, None),
    (CLOSED, "probe_early"): (CLOSED, False),
    (OPEN, "force_close"): (CLOSED, None),
    (OPEN, "probe_early"): (OPEN, True),
    (HALF_OPEN, "probe ok"): (CLOSED, Transition.CLOSED),
    (HALF_OPEN, "probe failure"): (OPEN, Transition.PROBE_FAILED),
    (HALF_OPEN, "force_open"): (OPEN, None),
    (HALF_OPEN, "force_close"): (CLOSED, None),
    (HALF_OPEN, "probe_early"): (HALF_OPEN, False),
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", BreakerState, ids=str)
def test_event_in_state(state, event):
    """Every event in every state leads where the table says."""
    breaker = MAKERS[state]()
    assert breaker.state is state
    epoch = breaker.epoch
    returned = EVENTS[event](breaker, NOW + 10)
    after, expected = TABLE.get((state, event), (state, None))
    assert (breaker.state, returned) == (after, expected)
    if after is not state:
        assert breaker.epoch > epoch


@pytest.mark.parametrize(
    "event", [event for event in EVENTS if event.startswith("late")]
)
@pytest.mark.parametrize("state", BreakerState, ids=str)
def test_late_settlement_changes_nothing(state, event):
    """A settlement of another epoch leaves no trace in any state."""
    breaker, twin = MAKERS[state](), MAKERS[state]()
    EVENTS[event](breaker, NOW + 10)
    assert view(breaker) == view(twin)


@pytest.mark.parametrize("event", ["ok", "failure", "neutral", "probe ok"])
def test_open_breaker_hears_nothing(event):
    """While open nothing closes it early, prolongs it or counts towards a trip."""
    breaker, twin = opened(), opened()
    EVENTS[event](breaker, NOW + 10)
    assert view(breaker) == view(twin)


def view(breaker: Breaker) -> tuple[object, ...]:
    return (
        breaker.state,
        breaker.until,
        breaker.level,
        breaker.epoch,
        breaker.recent_failures,
        breaker.ready_at(NOW),
    )


# Closed


def test_closed_breaker_lets_everything_out():
    """A closed breaker is ready now, and none of its requests is a probe."""
    breaker = closed()
    assert breaker.ready_at(NOW) == NOW
    assert not breaker.admit(NOW, NOW + LEASE)
    assert breaker.state is CLOSED


@pytest.mark.parametrize(("age", "trips"), [(119.99, True), (120.0, False)])
def test_failure_as_old_as_the_window_no_longer_counts(age, trips):
    """A failure counts up to its last moment in the window, and not at its end."""
    breaker = closed()
    for at in (NOW, NOW + age, NOW + age):
        breaker.settle(False, breaker.epoch, False, at)
    assert (breaker.state is OPEN) == trips


def test_success_clears_the_window():
    """Only consecutive failures trip."""
    breaker = closed()
    for ok in (False, False, True, False, False):
        assert breaker.settle(ok, breaker.epoch, False, NOW) is None
    assert breaker.state is CLOSED
    assert breaker.recent_failures == 2


def test_neutral_neither_counts_nor_clears():
    """A request that was dropped says nothing about the way out."""
    breaker = closed()
    for ok in (False, False, None):
        breaker.settle(ok, breaker.epoch, False, NOW)
    assert breaker.recent_failures == 2
    assert breaker.settle(False, breaker.epoch, False, NOW) is Transition.TRIPPED


def test_emptied_window_starts_from_nothing():
    """After a retirement it takes a whole threshold again."""
    breaker = closed()
    breaker.settle(False, breaker.epoch, False, NOW)
    breaker.settle(False, breaker.epoch, False, NOW)
    breaker.empty_window()
    breaker.settle(False, breaker.epoch, False, NOW)
    assert breaker.state is CLOSED


def test_requests_in_flight_at_a_trip_are_one_event():
    """The failures of requests admitted before the trip do not raise the cooldown."""
    breaker = closed()
    epoch = breaker.epoch
    for second in range(8):
        breaker.settle(False, epoch, False, NOW + second)
    assert breaker.level == 0
    assert breaker.until <= NOW + 2 + COOLDOWN * 1.1


# Cooldown


def test_cooldown_doubles_to_the_maximum():
    """Each failed probe doubles the pause, within the jitter, up to the maximum."""
    breaker = opened()
    pauses = [breaker.until - NOW]
    for _ in range(6):
        now = breaker.until
        breaker.admit(now, now + LEASE)
        breaker.settle(False, breaker.epoch, True, now + 1)
        pauses.append(breaker.until - now - 1)
    for level, pause in enumerate(pauses):
        due = min(14400, COOLDOWN * 2**level)
        assert 0.9 * due - 1e-3 <= pause <= 1.1 * due + 1e-3
    assert breaker.level == 6


def test_level_never_overflows():
    """A breaker whose probes fail for years still has a finite cooldown."""
    breaker = opened()
    for _ in range(3000):
        now = breaker.until
        breaker.admit(now, now + LEASE)
        breaker.settle(False, breaker.epoch, True, now)
    assert breaker.until - now <= 14400 * 1.1 + 1e-3


@pytest.mark.parametrize(("age", "level"), [(3599, 2), (3600, 0)])
def test_level_is_forgiven_after_four_cooldowns(age, level):
    """Closed without a trip for four cooldowns, a breaker starts as if new."""
    breaker = half_open()
    breaker.level = 2
    breaker.settle(True, breaker.epoch, True, NOW)
    assert breaker.level == 2
    trip(breaker, NOW + age)
    assert breaker.level == level
    pause = breaker.until - NOW - age
    assert pause == pytest.approx(COOLDOWN * 2**level, rel=0.101)


def test_many_breakers_do_not_probe_at_one_instant():
    """1,000 breakers opened at once spread their probes over 15 % of the cooldown."""
    rng = random.Random(7)
    due = []
    for _ in range(1000):
        breaker = Breaker(1, 120, COOLDOWN, 14400, rng)
        trip(breaker, NOW)
        due.append(breaker.ready_at(NOW))
    assert max(due) - min(due) >= 0.15 * COOLDOWN
    tenths = {int((at - min(due)) / (0.02 * COOLDOWN)) for at in due}
    assert len(tenths) >= 8


# The probe


def test_exactly_one_probe_goes_out():
    """While the probe is out nobody else is ready before its lease ends."""
    breaker = opened()
    now = breaker.ready_at(NOW)
    assert now == breaker.until
    assert breaker.admit(now, now + LEASE)
    assert breaker.ready_at(now) == now + LEASE


def test_extended_lease_holds_the_place_longer():
    """A lease can be made longer and never shorter."""
    breaker = half_open()
    end = breaker.ready_at(NOW)
    breaker.extend_lease(end + 10)
    breaker.extend_lease(end - 10)
    assert breaker.ready_at(NOW) == end + 10


def test_neutral_probe_gives_its_place_to_the_next():
    """A probe that was filtered or cancelled leaves the breaker half-open and ready."""
    breaker = half_open()
    now = breaker.until + 1
    epoch = breaker.epoch
    assert breaker.settle(None, epoch, True, now) is None
    assert breaker.state is HALF_OPEN
    assert breaker.ready_at(now) == now
    assert breaker.admit(now, now + LEASE)
    assert breaker.settle(True, epoch, True, now) is None
    assert breaker.state is HALF_OPEN


def test_lost_probe_does_not_stick_the_breaker():
    """After the lease the next request probes, and the lost one has no say."""
    breaker = half_open()
    lost = breaker.epoch
    now = breaker.ready_at(NOW)
    assert breaker.admit(now, now + LEASE)
    for ok in (False, True, None):
        assert breaker.settle(ok, lost, True, now) is None
    assert breaker.ready_at(now) == now + LEASE
    assert breaker.settle(True, breaker.epoch, True, now) is Transition.CLOSED


@pytest.mark.parametrize("ok", [True, False])
def test_repeated_probe_settlement_changes_nothing(ok):
    """A probe speaks once, whatever is heard of it later."""
    breaker = half_open()
    epoch = breaker.epoch
    assert breaker.settle(ok, epoch, True, NOW + 1000) is not None
    before = view(breaker)
    for again in (True, False, None):
        assert breaker.settle(again, epoch, True, NOW + 1001) is None
    assert view(breaker) == before


def test_passed_probe_leaves_an_empty_window():
    """A breaker that closed counts from nothing and keeps its level for a while."""
    breaker = half_open()
    breaker.settle(False, breaker.epoch, True, NOW + 1000)
    now = breaker.until
    breaker.admit(now, now + LEASE)
    breaker.settle(True, breaker.epoch, True, now)
    assert (breaker.state, breaker.recent_failures, breaker.level) == (CLOSED, 0, 1)


# Forced states


def test_forced_open_lasts_as_long_as_it_says():
    """An operator's time has no jitter, raises no level and voids the probe out."""
    breaker = half_open()
    probe = breaker.epoch
    breaker.force_open(NOW + 5000, NOW)
    assert (breaker.ready_at(NOW), breaker.level) == (NOW + 5000, 0)
    assert breaker.settle(True, probe, True, NOW) is None
    assert breaker.state is OPEN


def test_forced_open_into_the_past_is_ready_now():
    """A time that is over does not send the breaker back before now."""
    breaker = closed()
    breaker.force_open(NOW - 5, NOW)
    assert breaker.ready_at(NOW) == breaker.until == NOW


def test_forced_close_voids_what_is_under_way():
    """After a forced close neither the probe nor older failures count."""
    breaker = half_open()
    probe = breaker.epoch
    breaker.force_close(NOW)
    assert breaker.settle(False, probe, True, NOW) is None
    assert (breaker.state, breaker.recent_failures) == (CLOSED, 0)


def test_early_probe_goes_now():
    """An open breaker that is told to may probe at once, one request as ever."""
    breaker = opened()
    assert breaker.probe_early(NOW + 10)
    assert breaker.ready_at(NOW + 10) == NOW + 10
    assert breaker.admit(NOW + 10, NOW + 10 + LEASE)
    assert breaker.ready_at(NOW + 10) == NOW + 10 + LEASE
    assert breaker.settle(True, breaker.epoch, True, NOW + 11) is Transition.CLOSED


def test_early_probe_that_fails_costs_nothing():
    """It was nobody's turn: the breaker is open for as long as before, same level."""
    breaker = opened()
    until = breaker.until
    breaker.probe_early(NOW + 10)
    breaker.admit(NOW + 10, NOW + 10 + LEASE)
    transition = breaker.settle(False, breaker.epoch, True, NOW + 11)
    assert transition is Transition.PROBE_FAILED
    assert (breaker.state, breaker.until, breaker.level) == (OPEN, until, 0)
    breaker.admit(until, until + LEASE)
    breaker.settle(False, breaker.epoch, True, until + 1)
    assert breaker.level == 1


def test_early_probe_that_fails_late_counts_like_any_other():
    """Once its own time has come, an early probe that fails doubles the cooldown."""
    breaker = opened()
    until = breaker.until
    breaker.probe_early(until - 5)
    breaker.admit(until - 5, until - 5 + LEASE)
    breaker.settle(False, breaker.epoch, True, until + 1)
    assert breaker.level == 1
    assert breaker.until >= until + 1 + 2 * COOLDOWN * 0.9 - 1e-3


# Refusals


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, 0])
@pytest.mark.parametrize("name", ["threshold", "window", "cooldown", "max_cooldown"])
def test_bad_number_is_refused(name, value):
    """NaN, inf, zero and negative are refused, and the message names the field."""
    numbers = {"threshold": 8, "window": 120, "cooldown": 900, "max_cooldown": 14400}
    with pytest.raises(ValueError, match=name):
        Breaker(**{**numbers, name: value}, rng=random.Random(1))


# Any order


class BreakerMachine(RuleBasedStateMachine):
    """Requests that are admitted, settle late, twice or never; clocks that jump."""

    @initialize(seed=st.integers(0, 99), threshold=st.integers(1, 4))
    def start(self, seed, threshold):
        self.breaker = new_breaker(seed, threshold)
        self.now = NOW
        self.permits = []  # (epoch, is_probe, lease_until), also those settled
        self.settled = set()
        self.early = False

    @rule()
    def admit(self):
        state, ready = self.breaker.state, self.breaker.ready_at(self.now)
        assert ready >= self.now
        if ready > self.now:
            assert state is not CLOSED
            return
        lease = self.now + LEASE
        is_probe = self.breaker.admit(self.now, lease)
        assert is_probe == (state is not CLOSED)
        assert self.breaker.state is (HALF_OPEN if is_probe else CLOSED)
        self.permits.append((self.breaker.epoch, is_probe, lease))

    @precondition(lambda self: self.permits)
    @rule(ok=st.sampled_from([True, False, None]), data=st.data())
    def settle(self, ok, data):
        index = data.draw(st.integers(0, len(self.permits) - 1))
        epoch, is_probe, _ = self.permits[index]
        breaker, before = self.breaker, self.seen()
        present = epoch == breaker.epoch
        if is_probe and index in self.settled:
            assert not present
        transition = breaker.settle(ok, epoch, is_probe, self.now)
        self.settled.add(index)
        if not present:
            assert transition is None
            assert self.seen() == before
        elif is_probe and ok is not None:
            wanted = Transition.CLOSED if ok else Transition.PROBE_FAILED
            assert transition is wanted

    @rule(step=st.sampled_from([0.5, 10.0, LEASE, 120.0, 1000.0, 1e6, -5.0, -1e4]))
    def clock(self, step):
        self.now += step

    @rule()
    def wait(self):
        self.now = self.breaker.ready_at(self.now)

    @rule(seconds=st.sampled_from([-10.0, 100.0, 5000.0]))
    def force_open(self, seconds):
        self.breaker.force_open(self.now + seconds, self.now)

    @rule()
    def force_close(self):
        self.breaker.force_close(self.now)

    @rule()
    def probe_early(self):
        self.breaker.probe_early(self.now)

    @rule()
    def fail_enough(self):
        trip(self.breaker, self.now)

    def seen(self):
        breaker = self.breaker
        return (
            breaker.state,
            breaker.until,
            breaker.level,
            breaker.epoch,
            breaker.recent_failures,
            breaker.ready_at(self.now),
        )

    @invariant()
    def at_most_one_probe_has_a_say(self):
        present = [
            index
            for index, (epoch, is_probe, _) in enumerate(self.permits)
            if is_probe and epoch == self.breaker.epoch
        ]
        assert len(present) <= 1
        if present and self.breaker.state is HALF_OPEN:
            assert self.breaker.ready_at(self.now) >= self.permits[present[0]][2]

    @invariant()
    def time_alone_makes_it_ready(self):
        ready = self.breaker.ready_at(self.now)
        assert math.isfinite(ready)
        assert self.breaker.ready_at(ready) == ready

    @invariant()
    def numbers_stay_in_bounds(self):
        assert self.breaker.level >= 0
        assert self.breaker.recent_failures < self.breaker.threshold


BreakerMachine.TestCase.settings = settings(
    max_examples=120, stateful_step_count=40, deadline=None
)
TestBreakerInAnyOrder = BreakerMachine.TestCase
