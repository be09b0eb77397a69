"""A cell: when it lets a request out, and what an outcome does to it."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest

from scrapy_cells.domain.breaker import BreakerState
from scrapy_cells.domain.cell import Cell, CellOptions
from scrapy_cells.domain.outcome import Outcome
from tests.domain.cells import NOW, Source, end, names, new_cell, send, trip

CLOSED, OPEN, HALF_OPEN = BreakerState
OK, CAPTCHA, TIMEOUT, NEUTRAL = (
    Outcome.OK,
    Outcome.CAPTCHA,
    Outcome.TIMEOUT,
    Outcome.NEUTRAL,
)
LEASE = 25.0
"""Seconds: the default timeout, and the margin."""


def half_open(**options):
    """Return a cell with its probe on the wire, the probe, and the time."""
    cell = new_cell(**options)
    trip(cell, NOW)
    now = cell.ready_at(NOW)
    probe = send(cell, now)
    cell.take_events()
    return cell, probe, now


# Options


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1])
@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(CellOptions)])
def test_bad_option_is_refused(name, value):
    """NaN, inf and negative numbers are refused, and the message names the field."""
    with pytest.raises(ValueError, match=f"^{name}="):
        CellOptions(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pacing_floor", 0),
        ("pacing_floor", 1.5),
        ("captcha_penalty", 1.5),
        ("concurrency", 0),
        ("sessions", 0),
        ("quarantine", 0),
    ],
)
def test_option_that_cannot_work_is_refused(name, value):
    """A cell without a place, or one that would never recover, does not start."""
    with pytest.raises(ValueError, match=f"^{name}="):
        CellOptions(**{name: value})


# Budget and places


def test_burst_then_the_rate():
    """Five at once, then one each two seconds."""
    cell = new_cell(rate=0.5, burst=5)
    now, sent = NOW, []
    while len(sent) < 8:
        now = cell.ready_at(now)
        end(cell, OK, now)
        sent.append(now - NOW)
    assert sent == pytest.approx([0, 0, 0, 0, 0, 2, 4, 6], abs=1e-5)


def test_first_tokens_may_be_fewer_than_a_burst():
    """Cells that share a site's rate do not all start at once."""
    cell = Cell("07", CellOptions(), Source(), random.Random(1), NOW, tokens=0.25)
    assert cell.ready_at(NOW) == pytest.approx(NOW + 1.5)


def test_cell_without_a_place_is_parked():
    """No time makes it ready, only an answer that leaves the wire."""
    cell = new_cell(concurrency=2)
    permit, _ = send(cell, NOW), send(cell, NOW)
    assert cell.ready_at(NOW) == math.inf
    assert cell.admit(NOW, "key") is None
    cell.left_wire(permit)
    assert cell.in_flight == 1
    assert cell.ready_at(NOW) == NOW


def test_asking_changes_nothing():
    """ready_at may be called as often as anybody likes."""
    cell = new_cell(rate=0.5, burst=5)
    end(cell, OK, NOW)
    answers = [cell.ready_at(NOW + 1) for _ in range(1000)]
    assert set(answers) == {NOW + 1}
    assert cell.bucket.tokens == pytest.approx(4.5)


def test_place_is_given_back_once():
    """Left wire, settled, in any order and again: one place."""
    cell = new_cell(concurrency=2)
    permit, other = send(cell, NOW), send(cell, NOW)
    cell.left_wire(permit)
    cell.left_wire(permit)
    cell.settle(permit, OK, NOW)
    cell.left_wire(permit)
    assert cell.in_flight == 1
    cell.settle(other, OK, NOW)
    cell.left_wire(other)
    assert cell.in_flight == 0
    assert cell.outstanding == {}


def test_second_settlement_is_counted_and_changes_nothing():
    """The bug is elsewhere; the cell only takes note."""
    cell = new_cell()
    permit = end(cell, OK, NOW)
    health = cell.health.score
    assert not cell.settle(permit, CAPTCHA, NOW)
    assert cell.repeated_settlements == 1
    assert cell.health.score == health
    assert cell.counts == {OK: 1}


def test_permit_names_what_it_belongs_to():
    """Id, session and generation are there for logs and for late answers."""
    cell = new_cell()
    first, second = (cell.admit(NOW, "key") for _ in range(2))
    assert (first.id, second.id) == ("07:1", "07:2")
    assert first.session is second.session is cell.cohort.pick("key")
    assert (first.cell, first.generation) == ("07", 0)
    assert cell.outstanding == {"07:1": first, "07:2": second}


def test_retry_avoids_the_session_that_failed():
    """The preferences of the caller reach the cohort."""
    cell = new_cell()
    home = cell.cohort.pick("key")
    assert cell.admit(NOW, "key", avoid=[home.id]).session is not home


def test_request_that_was_never_sent_costs_nothing():
    """Its token comes back: tokens spent are requests sent."""
    cell = new_cell(rate=1e-9, burst=5)
    for _ in range(50):
        permit = cell.admit(NOW, "key")
        cell.settle(permit, NEUTRAL, NOW)
    assert cell.requests_sent == 0
    assert cell.bucket.tokens == pytest.approx(5)


def test_request_that_was_sent_stays_paid():
    """A cancelled request was seen by the site all the same."""
    cell = new_cell(rate=1e-9, burst=5)
    end(cell, NEUTRAL, NOW)
    assert cell.requests_sent == 1
    assert cell.bucket.tokens == pytest.approx(4)


def test_requests_are_counted_once():
    """Marking twice, or after the end, is no second request."""
    cell = new_cell()
    permit = send(cell, NOW)
    cell.mark_sent(permit, NOW, 20)
    cell.settle(permit, OK, NOW)
    cell.mark_sent(permit, NOW, 20)
    assert cell.requests_sent == 1
    assert cell.in_flight == 0


# Requests past the scheduler


def test_bypass_counts_only_places_on_the_wire():
    """All places may wait for robots.txt, which must get through."""
    cell = new_cell(concurrency=2)
    waiting = [cell.admit(NOW, "a"), cell.admit(NOW, "b")]
    robots = cell.admit(NOW, "robots", bypass=True)
    assert robots is not None
    assert cell.in_flight == 3
    cell.mark_sent(waiting[0], NOW, 20)
    cell.mark_sent(waiting[1], NOW, 20)
    assert cell.admit(NOW, "more", bypass=True) is None
    cell.left_wire(waiting[0])
    assert cell.admit(NOW, "more", bypass=True) is not None


def test_bypass_pays_and_asks_the_breaker():
    """It is no way around budget or breaker."""
    cell = new_cell(rate=0.5, burst=1)
    send(cell, NOW, bypass=True)
    assert cell.admit(NOW, "key", bypass=True) is None
    cell.force_open(NOW + 900, NOW)
    assert cell.ready_at(NOW + 100, bypass=True) == NOW + 900


# Breaker


def test_eighth_failure_opens():
    """It says why, and until when."""
    cell = new_cell()
    cell.suspended = True
    for index in range(8):
        assert cell.breaker.state is CLOSED
        end(cell, Outcome.SERVER_ERROR, NOW + index)
    (event,) = cell.take_events()
    assert cell.breaker.state is OPEN
    assert event.describe().startswith("cell 07 opened: 8 server errors in 7 s;")
    assert event.until == cell.breaker.until == cell.ready_at(NOW + 7)
    assert cell.closed_until(NOW + 7) == event.until


def test_nothing_goes_out_before_the_breaker_says():
    """Not even a moment before."""
    cell = new_cell()
    trip(cell, NOW)
    until = cell.breaker.until
    assert cell.admit(math.nextafter(until, 0), "key") is None
    assert cell.admit(until, "key").is_probe


def test_one_probe_at_a_time():
    """While it is out, the next may go when its lease ends."""
    cell, probe, now = half_open()
    assert probe.is_probe
    assert cell.ready_at(now) == now + LEASE
    assert cell.admit(now + LEASE - 0.1, "key") is None


def test_probe_that_is_sent_late_gets_its_whole_time():
    """The lease counts from the wire on."""
    cell = new_cell()
    trip(cell, NOW)
    now = cell.ready_at(NOW)
    probe = cell.admit(now, "key")
    cell.mark_sent(probe, now + 10, 60)
    assert cell.ready_at(now + 20) == now + 10 + 65


def test_passed_probe_closes_and_ramps():
    """The budget starts at a quarter with a burst of one, and is whole at the end."""
    cell, probe, now = half_open()
    cell.settle(probe, OK, now + 2)
    probed, closed = cell.take_events()
    assert probed.describe() == "cell 07 probed: ok"
    assert closed.seconds == pytest.approx(now + 2 - NOW)
    assert cell.breaker.state is CLOSED
    assert cell.pacing.factor(now + 2) == 0.25
    assert cell.bucket.tokens <= 1
    assert cell.pacing.done(now + 302)


def test_failed_probe_opens_twice_as_long():
    """And says what the probe met."""
    cell, probe, now = half_open()
    cell.settle(probe, TIMEOUT, now + 2)
    probed, opened = cell.take_events()
    assert probed.outcome == "timeout"
    assert (opened.level, opened.why) == (1, "its probe ended in timeout")
    assert 1620 <= opened.until - now - 2 <= 1980


def test_neutral_probe_gives_its_place_to_the_next():
    """Filtered, cancelled or answered from a cache: nothing was learnt."""
    cell, probe, now = half_open()
    cell.settle(probe, NEUTRAL, now)
    assert cell.breaker.state is HALF_OPEN
    assert names(cell) == []
    assert cell.admit(now, "key").is_probe


def test_probe_moves_the_breaker_only():
    """Neither health nor strikes feel a probe."""
    cell, probe, now = half_open()
    health = cell.health.score
    cell.settle(probe, CAPTCHA, now)
    assert (cell.health.score, probe.session.strikes) == (health, 0)
    assert cell.cohort.generation == 0


def test_lost_probe_is_heard_before_the_next_one_goes():
    """A probe that was never answered has timed out, and the breaker opens again."""
    cell, probe, now = half_open()
    assert cell.admit(now + LEASE, "key") is None
    assert probe.settled
    assert cell.counts[TIMEOUT] == 1
    assert names(cell) == ["CellProbed", "CellOpened"]


def test_probe_lost_before_the_wire_makes_way():
    """It told nothing; the next request probes."""
    cell = new_cell()
    trip(cell, NOW)
    now = cell.ready_at(NOW)
    lost = cell.admit(now, "key")
    following = cell.admit(now + LEASE, "key")
    assert lost.settled
    assert following.is_probe
    assert cell.counts[NEUTRAL] == 1


def test_failures_in_flight_at_the_trip_change_nothing():
    """They are one event: no re-open, no longer pause, no lower health."""
    cell = new_cell(concurrency=16)
    flying = [send(cell, NOW) for _ in range(8)]
    trip(cell, NOW + 1)
    cell.take_events()
    until, health = cell.breaker.until, cell.health.score
    for permit, outcome in zip(
        flying, [TIMEOUT, CAPTCHA, OK, NEUTRAL] * 2, strict=True
    ):
        cell.settle(permit, outcome, NOW + 2)
    assert (cell.breaker.state, cell.breaker.level) == (OPEN, 0)
    assert (cell.breaker.until, cell.health.score) == (until, health)
    assert names(cell) == []
    assert cell.counts[TIMEOUT] == 2


def test_failures_from_before_do_not_count_after_closing():
    """Not even when they come so late that the breaker is closed again."""
    cell = new_cell()
    flying = [send(cell, NOW) for _ in range(8)]
    trip(cell, NOW)
    cell.force_close(NOW + 1)
    for permit in flying:
        cell.settle(permit, TIMEOUT, NOW + 2)
    assert cell.breaker.state is CLOSED
    assert cell.breaker.recent_failures == 0
    assert cell.health.score == 1
    assert [session.strikes for session in cell.cohort.sessions] == [0, 0, 0, 0]


def test_words_of_a_suspended_cell_count_what_it_met():
    """Nobody is given up in an outage, but the breaker's reason stays true."""
    cell = new_cell()
    trip(cell, NOW + 5000)
    assert cell.take_events()[0].why == "8 server errors in 0 s"


# Retry-After


def test_retry_after_holds_the_whole_cell():
    """No session goes out until then, and closed_until says so."""
    cell = new_cell()
    end(cell, Outcome.RATE_LIMITED, NOW, retry_after=30)
    assert cell.ready_at(NOW) == cell.closed_until(NOW) == NOW + 30
    assert cell.admit(NOW + 29.9, "key") is None
    (event,) = cell.take_events()
    assert event.until == NOW + 30


def test_one_request_goes_first_after_a_hold():
    """Until one comes back fine; another failure keeps it at one."""
    cell = new_cell()
    end(cell, Outcome.RATE_LIMITED, NOW, retry_after=30)
    first = send(cell, NOW + 30)
    assert cell.ready_at(NOW + 30) == math.inf
    cell.settle(first, Outcome.SERVER_ERROR, NOW + 31)
    second = send(cell, NOW + 31)
    assert cell.ready_at(NOW + 31) == math.inf
    cell.settle(second, NEUTRAL, NOW + 32)
    third = send(cell, NOW + 32)
    assert cell.ready_at(NOW + 32) == math.inf
    cell.settle(third, OK, NOW + 33)
    send(cell, NOW + 33)
    assert cell.ready_at(NOW + 33) == NOW + 33


def test_answer_from_before_the_hold_does_not_end_the_single_file():
    """It says nothing about whether the site has calmed down."""
    cell = new_cell()
    early = send(cell, NOW)
    end(cell, Outcome.RATE_LIMITED, NOW, retry_after=30)
    cell.settle(early, OK, NOW + 1)
    send(cell, NOW + 30)
    assert cell.ready_at(NOW + 30) == math.inf


def test_robots_txt_may_go_beside_the_single_request():
    """The one may be waiting for it."""
    cell = new_cell()
    end(cell, Outcome.RATE_LIMITED, NOW, retry_after=30)
    cell.admit(NOW + 30, "key")
    assert cell.admit(NOW + 30, "robots", bypass=True) is not None


def test_hold_is_no_breaker_failure_and_costs_health_once():
    """Sixteen in flight are told the same thing: one event."""
    cell = new_cell()
    flying = [send(cell, NOW) for _ in range(16)]
    for index, permit in enumerate(flying):
        cell.settle(permit, Outcome.RATE_LIMITED, NOW + index, retry_after=30)
    assert cell.breaker.state is CLOSED
    assert cell.breaker.recent_failures == 0
    assert cell.health.score == pytest.approx(0.9)
    assert cell.hold_until == NOW + 45
    assert names(cell) == ["CellHeld"]


def test_shorter_hold_does_not_shorten():
    """The latest time that was asked for counts."""
    cell = new_cell()
    first, second = send(cell, NOW), send(cell, NOW)
    cell.settle(first, Outcome.RATE_LIMITED, NOW, retry_after=60)
    cell.settle(second, Outcome.RATE_LIMITED, NOW + 1, retry_after=2)
    assert cell.hold_until == NOW + 60


def test_next_hold_is_a_new_event():
    """The request after the hold is told to wait again: that counts."""
    cell = new_cell()
    end(cell, Outcome.RATE_LIMITED, NOW, retry_after=30)
    end(cell, Outcome.RATE_LIMITED, NOW + 30, retry_after=30)
    assert cell.hold_until == NOW + 60
    assert cell.health.score == pytest.approx(0.81)
    assert names(cell) == ["CellHeld", "CellHeld"]


def test_rate_limit_without_a_time_is_a_failure_like_others():
    """There is nothing to wait for but the breaker."""
    cell = new_cell()
    for _ in range(6):
        end(cell, Outcome.RATE_LIMITED, NOW)
    assert cell.breaker.recent_failures == 6
    assert cell.hold_until == 0


def test_retry_after_of_a_fine_answer_is_nothing():
    """Some sites send it always."""
    cell = new_cell()
    end(cell, OK, NOW, retry_after=3600)
    assert cell.ready_at(NOW) == NOW


def test_probe_that_is_told_to_wait_waits():
    """No longer pause: the site said when. Then the next probe goes."""
    cell, probe, now = half_open()
    cell.settle(probe, Outcome.RATE_LIMITED, now, retry_after=10)
    assert (cell.breaker.state, cell.breaker.level) == (HALF_OPEN, 0)
    assert cell.ready_at(now) == now + 10
    assert send(cell, now + 10).is_probe


def test_open_cell_keeps_a_hold_that_is_longer():
    """A request in flight at the trip may still say how long to wait."""
    cell = new_cell()
    early = send(cell, NOW)
    trip(cell, NOW)
    cell.settle(early, Outcome.RATE_LIMITED, NOW + 1, retry_after=7200)
    assert cell.ready_at(NOW + 1) == cell.closed_until(NOW + 1) == NOW + 7201
    assert cell.breaker.level == 0


def test_captcha_with_retry_after_may_retire():
    """A block is a block, whatever it says about waiting."""
    cell = new_cell()
    end(cell, CAPTCHA, NOW, 0)
    end(cell, CAPTCHA, NOW + 1, 1)
    end(cell, CAPTCHA, NOW + 2, 2, retry_after=30)
    assert cell.cohort.generation == 1
    assert cell.hold_until == NOW + 32


# Leases


def test_sweep_times_out_what_was_on_the_wire():
    """Its request has vanished; place and permit come back."""
    cell = new_cell()
    permit = send(cell, NOW)
    assert cell.sweep(NOW + LEASE - 0.1) == []
    assert cell.sweep(NOW + LEASE) == [permit]
    assert cell.counts == {TIMEOUT: 1}
    assert (cell.in_flight, cell.outstanding) == (0, {})


def test_sweep_is_neutral_about_what_was_never_sent():
    """It says nothing about the way out, and the token comes back."""
    cell = new_cell(rate=1e-9, burst=5)
    cell.admit(NOW, "key")
    cell.sweep(NOW + LEASE)
    assert cell.counts == {NEUTRAL: 1}
    assert cell.bucket.tokens == pytest.approx(5)


def test_sweep_is_neutral_about_what_was_answered():
    """The answer came; whoever had it never said what it was."""
    cell = new_cell()
    permit = send(cell, NOW)
    cell.mark_received(permit)
    cell.sweep(NOW + LEASE)
    assert cell.counts == {NEUTRAL: 1}


def test_settlement_after_the_sweep_is_late():
    """It was settled, once."""
    cell = new_cell()
    permit = send(cell, NOW)
    cell.sweep(NOW + LEASE)
    assert not cell.settle(permit, OK, NOW + LEASE + 1)


# Operator


def test_forced_open_cell_waits_and_then_probes():
    """An operator's stop ends with a probe, as every other."""
    cell = new_cell()
    cell.force_open(NOW + 500, NOW)
    assert names(cell) == ["CellOpened"]
    assert cell.ready_at(NOW) == NOW + 500
    assert send(cell, NOW + 500).is_probe


def test_forced_close_ramps():
    """A cell that is let go again does so slowly; an open one is left alone."""
    cell = new_cell()
    trip(cell, NOW)
    cell.take_events()
    cell.force_close(NOW + 60)
    (event,) = cell.take_events()
    assert event.seconds == 60
    assert cell.pacing.factor(NOW + 60) == 0.25
    cell.force_close(NOW + 61)
    assert names(cell) == []


def test_early_probe():
    """The outage guard may ask one cell to look before its time."""
    cell = new_cell()
    trip(cell, NOW)
    cell.probe_early(NOW + 10)
    assert cell.ready_at(NOW + 10) == NOW + 10
    assert send(cell, NOW + 10).is_probe


# What there is to see


def test_snapshot_of_a_working_cell():
    """Numbers since the start, and the share of the budget in use."""
    cell = new_cell()
    end(cell, OK, NOW)
    end(cell, CAPTCHA, NOW)
    send(cell, NOW)
    seen = cell.snapshot(NOW)
    assert (seen.id, seen.state, seen.until) == ("07", "closed", None)
    assert (seen.health, seen.generation, seen.factor) == (0.75, 0, 1.0)
    assert (seen.in_flight, seen.requests, seen.replaced) == (1, 3, 0)
    assert seen.outcomes == {"ok": 1, "captcha": 1}


def test_snapshot_names_the_state():
    """Every state a person may ask about."""
    cell, probe, now = half_open()
    assert cell.snapshot(now).state == "half_open"
    cell.settle(probe, OK, now)
    assert cell.snapshot(now).state == "warming"
    end(cell, Outcome.RATE_LIMITED, now + 900, retry_after=30)
    seen = cell.snapshot(now + 900)
    assert (seen.state, seen.until) == ("held", now + 930)
    cell.force_open(now + 9000, now + 950)
    seen = cell.snapshot(now + 950)
    assert (seen.state, seen.until) == ("open", now + 9000)


def test_clock_that_steps_back_neither_issues_nor_sticks():
    """Nothing extra goes out, and what was due is due when the clock is back."""
    cell = new_cell(rate=0.5, burst=1)
    end(cell, OK, NOW)
    assert cell.admit(NOW - 3600, "key") is None
    assert cell.ready_at(NOW - 3600) == pytest.approx(NOW + 2)
    assert cell.admit(NOW + 2, "key") is not None
