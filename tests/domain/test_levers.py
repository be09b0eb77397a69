"""What a cell gives up in trouble: a session, the cohort, hours."""

from __future__ import annotations

import random
from collections import Counter, deque
from itertools import cycle, pairwise

import pytest

from scrapy_cells.domain.breaker import BreakerState
from scrapy_cells.domain.cell import Cell, CellOptions
from scrapy_cells.domain.outcome import Outcome
from tests.domain.cells import DAY, NOW, Source, end, names, new_cell, send, trip, wait

CLOSED, OPEN, HALF_OPEN = BreakerState
OK, CAPTCHA, BLOCKED = Outcome.OK, Outcome.CAPTCHA, Outcome.BLOCKED
HOUR = 3600.0


def captchas(cell, now, count=3):
    """Let captchas meet different sessions, one a second; return the time after."""
    for index in range(count):
        end(cell, CAPTCHA, now + index, index % cell.options.sessions)
    return now + count - 1


def quarantined(source=None, **options):
    """Return a cell whose second cohort was blocked too, and the time."""
    cell = new_cell(source, **options)
    now = captchas(cell, NOW)
    now = captchas_slowly(cell, now)
    assert cell.quarantined
    cell.take_events()
    return cell, now


def captchas_slowly(cell, now, count=3):
    for index in range(count):
        now = wait(cell, now)
        end(cell, CAPTCHA, now, index)
    return now


def close_by_probe(cell, now):
    now = wait(cell, now)
    end(cell, OK, now)
    assert cell.breaker.state is CLOSED
    return now


# (a) A session


def test_third_strike_replaces_the_session():
    """The health it cost is given back, and the cohort stays."""
    cell = new_cell()
    home = cell.cohort.sessions[2]
    for index in range(3):
        assert cell.cohort.get(home.id) is home
        end(cell, BLOCKED, NOW + index, 2)
    (event,) = cell.take_events()
    assert event.describe() == (
        "cell 07 replaced session 07g0s2 by 07g0s2r1:"
        " 3 failures in a row, the last blocked"
    )
    assert event.retired == ("07g0s2",)
    assert cell.health.score == pytest.approx(1.0)
    assert cell.cohort.generation == 0
    assert cell.snapshot(NOW).replaced == 1


def test_fine_answer_clears_strikes():
    """Two blocks, an answer, two blocks: nobody goes."""
    cell = new_cell(retire_below=0.1)
    for outcome in (BLOCKED, BLOCKED, OK, BLOCKED, BLOCKED):
        end(cell, outcome, NOW, 2)
    assert cell.cohort.sessions[2].id == "07g0s2"
    assert cell.cohort.sessions[2].strikes == 2


def test_replacement_gives_back_only_the_last_trouble():
    """What a session cost before its last fine answer was won back by then."""
    cell = new_cell(retire_below=0.1)
    for outcome in (CAPTCHA, OK, CAPTCHA, CAPTCHA, CAPTCHA):
        end(cell, outcome, NOW, 2)
    assert names(cell) == ["SessionReplaced"]
    assert cell.health.score == pytest.approx(0.8)


def test_fine_answer_of_another_session_clears_nothing():
    """Each session answers for itself."""
    cell = new_cell()
    for _ in range(3):
        end(cell, BLOCKED, NOW, 2)
        end(cell, OK, NOW, 1)
    assert cell.cohort.sessions[2].id == "07g0s2r1"


@pytest.mark.parametrize("outcome", [o for o in Outcome if o.is_failure])
def test_only_what_a_session_can_help_is_a_strike(outcome):
    """A server's error or an empty page is not the proxy's fault."""
    cell = new_cell()
    for _ in range(3):
        end(cell, outcome, NOW, 0)
    replaced = cell.cohort.sessions[0].id == "07g0s0r1"
    assert replaced == outcome.strikes_session
    assert cell.cohort.generation == 0


def test_one_bad_session_of_three_costs_five_requests():
    """Always 403: three strikes and what was in flight; the cohort stays."""
    cell = new_cell(sessions=3, concurrency=3)
    bad = cell.cohort.sessions[1].id
    hits: Counter[str] = Counter()
    flying = deque()
    keys = cycle(f"key-{number}" for number in range(30))
    for step in range(400):
        now = NOW + step
        while len(flying) < 3:
            permit = cell.admit(now, next(keys))
            cell.mark_sent(permit, now, 20)
            hits[permit.session.id] += 1
            flying.append(permit)
        permit = flying.popleft()
        cell.settle(permit, BLOCKED if permit.session.id == bad else OK, now)
    assert 3 <= hits[bad] <= 5
    assert cell.cohort.generation == 0
    assert cell.breaker.state is CLOSED
    assert names(cell) == ["SessionReplaced"]


def test_more_than_half_of_the_sessions_is_the_cohort():
    """Two of four are replaced; for the third it is everybody's trouble."""
    cell = new_cell(breaker_threshold=20)
    for index in range(3):
        for strike in range(3):
            end(cell, BLOCKED, NOW + index * 10 + strike, index)
    assert names(cell) == ["SessionReplaced", "SessionReplaced", "CohortRetired"]


def test_replacements_long_ago_are_forgotten():
    """After the fresh window sessions are replaced one by one again."""
    cell = new_cell()
    for index in range(4):
        for _ in range(3):
            end(cell, BLOCKED, NOW + index * 601, index)
    assert names(cell) == ["SessionReplaced"] * 4


def test_single_session_is_its_cohort():
    """There is no half to replace."""
    cell = new_cell(sessions=1)
    for _ in range(3):
        end(cell, BLOCKED, NOW)
    assert names(cell) == ["CohortRetired"]


def test_late_outcomes_of_a_replaced_session_change_nothing():
    """Neither the one in its place nor the cell pays for them."""
    cell = new_cell()
    flying = [send(cell, NOW, 2) for _ in range(8)]
    for permit in flying[:3]:
        cell.settle(permit, BLOCKED, NOW + 1)
    cell.take_events()
    for permit in flying[3:]:
        cell.settle(permit, BLOCKED, NOW + 2)
    assert cell.health.score == pytest.approx(1.0)
    assert cell.breaker.recent_failures == 3
    assert [session.strikes for session in cell.cohort.sessions] == [0, 0, 0, 0]
    assert names(cell) == []
    assert cell.counts[BLOCKED] == 8


# (b) The cohort


def test_three_captchas_retire_the_cohort():
    """On different sessions, from full health: 0.42."""
    cell = new_cell()
    old = tuple(session.id for session in cell.cohort.sessions)
    captchas(cell, NOW, 2)
    assert cell.cohort.generation == 0
    end(cell, CAPTCHA, NOW + 41, 2)
    (event,) = cell.take_events()
    assert event.describe() == (
        "cell 07 retired cohort g0: health 0.42 after 3 captchas in 41 s;"
        " g1 warms up at 25 % for 300 s"
    )
    assert event.retired == old
    assert cell.cohort.generation == 1


def test_seven_soft_failures_retire_before_the_breaker_opens():
    """At 0.478; the eighth is the first of the next cohort."""
    cell = new_cell()
    for index in range(7):
        assert cell.cohort.generation == 0
        end(cell, Outcome.SERVER_ERROR, NOW + index)
    (event,) = cell.take_events()
    assert event.health == pytest.approx(0.478, abs=0.001)
    assert event.why == "7 server errors in 6 s"
    assert cell.breaker.state is CLOSED
    assert cell.breaker.recent_failures == 0


def test_next_cohort_starts_afresh_and_slowly():
    """Full health, a quarter of the budget, burst 1, no failures on record."""
    cell = new_cell(rate=4, burst=5)
    now = captchas(cell, NOW)
    assert cell.health.score == 1
    assert cell.breaker.recent_failures == 0
    assert cell.bucket.tokens <= 1
    assert cell.pacing.factor(now + 299) == 0.25
    assert cell.pacing.done(now + 300)
    end(cell, OK, wait(cell, now))
    assert cell.ready_at(now + 1) - now == pytest.approx(1, abs=0.1)


def test_late_outcomes_of_a_retired_cohort_change_nothing():
    """Captchas under way at the retirement are not the new cohort's."""
    cell = new_cell()
    flying = [send(cell, NOW, index % 4) for index in range(12)]
    for permit in flying[:3]:
        cell.settle(permit, CAPTCHA, NOW + 1)
    for permit in flying[3:6]:
        cell.settle(permit, CAPTCHA, NOW + 2)
    for permit in flying[6:9]:
        cell.settle(permit, OK, NOW + 2)
    for permit in flying[9:]:
        cell.settle(permit, CAPTCHA, NOW + 2, retry_after=1)
    assert cell.cohort.generation == 1
    assert cell.health.score == 1
    assert cell.breaker.recent_failures == 0
    assert [session.strikes for session in cell.cohort.sessions] == [0, 0, 0, 0]
    assert names(cell) == ["CohortRetired", "CellHeld"]


def test_fine_answers_win_health_back():
    """Captchas among many fine answers retire nobody."""
    cell = new_cell()
    for index in range(200):
        end(cell, CAPTCHA if index % 10 == 0 else OK, NOW + index, index % 4)
    assert names(cell) == []
    assert cell.health.score > 0.9


def test_fine_answer_never_retires():
    """Levers are pulled on failures only, however low the health."""
    cell = new_cell(retire_below=0.5)
    cell.health.score = 0.3
    end(cell, OK, NOW)
    assert cell.cohort.generation == 0


def test_healed_cell_is_not_retired_by_the_answer_that_closes_it():
    """The probe that passes closes the breaker and does nothing else."""
    cell = new_cell()
    trip(cell, NOW)
    cell.health.score = 0.3
    cell.take_events()
    close_by_probe(cell, NOW)
    assert names(cell) == ["CellProbed", "CellClosed"]
    assert cell.cohort.generation == 0


def test_words_name_every_kind_of_failure():
    """The most frequent first."""
    cell = new_cell(retire_below=0.75)
    for outcome in (Outcome.EMPTY, Outcome.CONNECTION, Outcome.CONNECTION):
        end(cell, outcome, NOW)
    assert cell.take_events()[0].why == (
        "2 connection failures and 1 empty answer in 0 s"
    )


def test_suspended_cell_gives_nothing_up():
    """In an outage the breaker works as ever, and nobody is given up for it."""
    cell = new_cell()
    cell.suspended = True
    for _ in range(8):
        end(cell, CAPTCHA, NOW, 1)
    assert names(cell) == ["CellOpened"]
    assert cell.cohort.sessions[1].id == "07g0s1"
    assert cell.health.score == 1


# (c) Quarantine


def test_fresh_cohort_that_is_blocked_too_is_a_quarantine():
    """It is not the addresses: four hours, and no third generation."""
    cell = new_cell()
    now = captchas_slowly(cell, captchas(cell, NOW))
    retired, quarantine = cell.take_events()
    assert retired.generation == 0
    assert quarantine.describe() == (
        "cell 07 quarantined for 4 h: fresh cohort g1 was blocked too:"
        f" 3 captchas in {now - NOW - 2:.0f} s"
    )
    assert len(quarantine.retired) == 4
    assert cell.ready_at(now) == cell.closed_until(now) == now + 4 * HOUR
    seen = cell.snapshot(now)
    assert (seen.state, seen.until) == ("quarantined", now + 4 * HOUR)


def test_cohort_past_its_fresh_window_is_retired_again():
    """It worked for a while, so new addresses are worth their price."""
    cell = new_cell()
    captchas(cell, NOW)
    captchas_slowly(cell, NOW + 700)
    assert names(cell) == ["CohortRetired", "CohortRetired"]


@pytest.mark.parametrize("shop", range(20))
def test_site_that_blocks_everything_costs_sixteen_captchas(shop):
    """Four sessions, four in flight, the default budget: two generations."""
    cell = Cell("07", CellOptions(), Source(), random.Random(1), NOW)
    now, flying, met, generations = NOW, deque(), 0, set()
    while not (cell.quarantined and not flying):
        key = f"shop-{shop}/key-{cell.admitted}"
        permit = None if cell.quarantined else cell.admit(now, key)
        if permit is not None:
            cell.mark_sent(permit, now, 20)
            flying.append((now + 1.5, permit))
            generations.add(permit.generation)
            continue
        if flying:
            now, permit = max(now, flying[0][0]), flying.popleft()[1]
            cell.settle(permit, CAPTCHA, now)
            met += 1
        else:
            now = wait(cell, now)
    assert met <= 16
    assert generations == {0, 1}
    told = [name for name in names(cell) if name != "SessionReplaced"]
    assert told == ["CohortRetired", "CellQuarantined"]


def test_first_probe_after_quarantine_goes_with_a_fresh_cohort():
    """Drawn when it is needed, not hours before; one probe, then a slow start."""
    source = Source()
    cell, now = quarantined(source)
    drawn = len(source.drawn)
    until = now + 4 * HOUR
    assert cell.cohort.generation == 1
    assert cell.admit(until - 1, "key") is None
    assert len(source.drawn) == drawn
    probe = send(cell, until)
    assert probe.is_probe
    assert probe.generation == 2
    assert cell.quarantined
    cell.settle(probe, OK, until + 1)
    assert not cell.quarantined
    assert cell.pacing.factor(until + 1) == 0.25
    assert names(cell) == ["CellProbed", "CellClosed"]


def test_second_probe_keeps_the_cohort_of_the_first():
    """A neutral probe does not cost a generation."""
    cell, now = quarantined()
    now += 4 * HOUR
    cell.settle(send(cell, now), Outcome.NEUTRAL, now)
    assert send(cell, wait(cell, now)).generation == 2


def test_blocked_probe_of_a_fresh_cohort_is_quarantine_again():
    """Twice as long each time, a day at most."""
    cell, now = quarantined()
    pauses = []
    for _ in range(4):
        now = wait(cell, now)
        end(cell, CAPTCHA, now)
        assert cell.quarantined
        pauses.append((cell.breaker.until - now) / HOUR)
    assert pauses == [8, 16, 24, 24]
    assert names(cell) == ["CellProbed", "CellQuarantined"] * 4
    assert cell.cohort.generation == 5


def test_probe_of_a_quarantined_cell_that_times_out_only_opens():
    """Nobody blocked it: the breaker's own pause, and the same cohort after it."""
    cell, now = quarantined()
    now = wait(cell, now)
    end(cell, Outcome.TIMEOUT, now)
    assert names(cell) == ["CellProbed", "CellOpened"]
    now = wait(cell, now)
    assert send(cell, now).generation == 2
    assert cell.quarantined


def test_blocked_probe_of_a_suspended_cell_is_no_quarantine():
    """The outage guard holds all levers."""
    cell, now = quarantined()
    now = wait(cell, now)
    cell.suspended = True
    end(cell, CAPTCHA, now)
    assert names(cell) == ["CellProbed", "CellOpened"]


def test_blocked_probe_of_an_old_cohort_only_opens():
    """Only a fresh cohort tells that new addresses do not help."""
    cell = new_cell()
    trip(cell, NOW)
    cell.take_events()
    end(cell, CAPTCHA, cell.ready_at(NOW))
    assert names(cell) == ["CellProbed", "CellOpened"]


@pytest.mark.parametrize(
    ("healthy", "hours"), [(2 * HOUR, 8), (21 * HOUR, 8), (25 * HOUR, 4)]
)
def test_quarantine_is_forgiven_after_a_day_in_health(healthy, hours):
    """Before that the next one is twice as long."""
    cell, now = quarantined()
    now = close_by_probe(cell, now) + healthy
    now = captchas_slowly(cell, now)
    now = captchas_slowly(cell, now)
    assert cell.quarantined
    assert (cell.breaker.until - now) / HOUR == hours


def test_days_in_quarantine_are_no_days_in_health():
    """A cell without work until long after its quarantine has proven nothing."""
    cell, now = quarantined()
    now += 4 * HOUR + 2 * DAY
    end(cell, CAPTCHA, now)
    assert (cell.breaker.until - now) / HOUR == 8


def test_late_outcomes_do_not_touch_a_quarantine():
    """What was in flight when it began is over."""
    cell = new_cell()
    now = captchas(cell, NOW)
    now = cell.ready_at(now) + 10
    cell.pacing.reset()
    cell.bucket.set_rate(1000, 1000, now)
    now += 10
    flying = [send(cell, now, index % 4) for index in range(8)]
    for permit in flying[:3]:
        cell.settle(permit, CAPTCHA, now)
    assert cell.quarantined
    until = cell.breaker.until
    for permit in flying[3:]:
        cell.settle(permit, CAPTCHA, now + 1)
    assert cell.breaker.until == until
    assert names(cell) == ["CohortRetired", "CellQuarantined"]


def test_quarantined_cell_does_not_probe_early():
    """Not even for all others."""
    cell, now = quarantined()
    cell.probe_early(now)
    assert cell.ready_at(now) == now + 4 * HOUR


def test_operator_may_end_a_quarantine():
    """Forced closed, it works again, slowly."""
    cell, now = quarantined()
    cell.force_close(now + 10)
    assert not cell.quarantined
    assert cell.health.score == 1
    assert cell.ready_at(now + 20) == now + 20
    assert cell.pacing.factor(now + 10) == 0.25


# An explicit list of proxies


def test_empty_reserve_is_a_quarantine_that_says_so():
    """Burnt addresses do not come back, there are no others: the cell waits."""
    cell = new_cell(Source(reserve=4))
    now = captchas(cell, NOW)
    (event,) = cell.take_events()
    assert event.describe() == (
        "cell 07 quarantined for 4 h: no proxy is left in its reserve"
    )
    assert cell.cohort.generation == 0
    assert cell.ready_at(now) == now + 4 * HOUR


def test_reserve_that_is_still_empty_prolongs_the_quarantine():
    """Until the burnt ones have rested for a day; then one probe."""
    cell = new_cell(Source(reserve=4))
    now = captchas(cell, NOW)
    until = now
    for _ in range(2):
        until = wait(cell, until)
        assert cell.admit(until, "key") is None
        assert cell.quarantined
    assert (until - now) / HOUR == 12
    until = wait(cell, until)
    assert (until - now) / HOUR == 28
    assert send(cell, until).generation == 1


def test_empty_reserve_leaves_a_bad_session_to_the_health():
    """There is nobody to replace it, so the whole cohort is judged."""
    cell = new_cell(Source(reserve=4))
    for _ in range(3):
        end(cell, BLOCKED, NOW, 0)
    assert names(cell) == ["CellQuarantined"]


# Rotation


def test_one_session_a_day_is_rotated():
    """Over five days in health every session is changed, the oldest first."""
    cell = new_cell(session_rotation=DAY)
    for hour in range(4 * 24 + 24):
        end(cell, OK, NOW + hour * HOUR)
    events = cell.take_events()
    assert [event.session for event in events][:4] == [
        "07g0s0",
        "07g0s1",
        "07g0s2",
        "07g0s3",
    ]
    gaps = [b.at - a.at for a, b in pairwise(events)]
    assert gaps == [DAY] * (len(events) - 1)
    assert events[0].describe() == "cell 07 rotated session 07g0s0 to 07g0s0r1"
    assert cell.health.score == 1


def test_cells_rotate_at_different_hours():
    """The day's load on the gateway is spread."""
    hours = set()
    for number in range(24):
        cell = new_cell(cell_id=f"{number:02}", session_rotation=DAY)
        for hour in range(26):
            end(cell, OK, NOW + hour * HOUR)
        hours.add(cell.take_events()[0].at)
    assert len(hours) >= 12


def in_trouble(cell, now):
    end(cell, Outcome.SERVER_ERROR, now)


def warming(cell, now):
    cell.pacing.warm_up(now)


def held(cell, now):
    end(cell, Outcome.RATE_LIMITED, now - 10, retry_after=10)


def half_open(cell, now):
    cell.force_open(now, now - 10)


def test_rotation_waits_for_health():
    """A cell that is still winning it back keeps its sessions."""
    cell = new_cell(session_rotation=DAY)
    cell.health.score = 0.82
    for step, rotated in enumerate([False, False, True]):
        end(cell, OK, NOW + DAY + step)
        assert names(cell) == ["SessionRotated"] * rotated


@pytest.mark.parametrize("trouble", [in_trouble, warming, held, half_open])
def test_rotation_waits_for_better_times(trouble):
    """Never during warm-up or trouble; it is made up for later."""
    cell = new_cell(session_rotation=DAY)
    now = NOW + DAY - 1  # not due before, nor asked
    cell.cohort.rotate(NOW - 1)
    cell.take_events()
    trouble(cell, now - 1)
    end(cell, OK, now + 2)
    assert "SessionRotated" not in names(cell)
    end(cell, OK, now + 2000)
    assert names(cell) == ["SessionRotated"]


def test_one_page_that_always_fails_does_not_cost_the_cohort():
    """Failures of a single key speak against the page; two keys, against the way."""
    cell = new_cell()
    for session in cell.cohort.sessions:
        permit = cell.admit(NOW, "the same", session=session.id)
        cell.mark_sent(permit, NOW, 20)
        cell.settle(permit, Outcome.BLOCKED, NOW)
    assert cell.cohort.generation == 0
    assert cell.health.score < cell.options.retire_below
    permit = cell.admit(NOW, "another")
    cell.mark_sent(permit, NOW, 20)
    cell.settle(permit, Outcome.BLOCKED, NOW)
    assert cell.cohort.generation == 1


def test_page_that_failed_before_a_fine_answer_is_forgotten():
    """Only keys that failed since then are counted."""
    cell = new_cell()
    end(cell, CAPTCHA, NOW, 0)
    end(cell, OK, NOW, 0)
    for session in cell.cohort.sessions:
        permit = cell.admit(NOW, "the same", session=session.id)
        cell.mark_sent(permit, NOW, 20)
        cell.settle(permit, CAPTCHA, NOW)
    assert cell.health.score < cell.options.retire_below
    assert cell.cohort.generation == 0
