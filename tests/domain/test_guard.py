"""The outage guard: everybody's fault is nobody's."""

from __future__ import annotations

import pytest

from scrapy_cells.domain.guard import OutageGuard
from scrapy_cells.domain.outcome import Outcome
from tests.domain.cells import NOW

OUTAGES = [outcome for outcome in Outcome if outcome.is_outage]


def fail(guard, cells, outcome=Outcome.TIMEOUT, now=NOW, times=2):
    for cell in cells:
        for _ in range(times):
            guard.note(cell, outcome, now)


def kinds(events):
    return [type(event).__name__ for event in events]


def in_outage():
    guard = OutageGuard()
    fail(guard, "abc")
    guard.check(NOW)
    return guard


@pytest.mark.parametrize("outcome", OUTAGES)
def test_half_of_the_cells_failing_is_an_outage(outcome):
    """Three of six fail: nobody is given up until it is over."""
    guard = OutageGuard()
    fail(guard, "abc", outcome)
    fail(guard, "def", Outcome.OK)
    (event,) = guard.check(NOW + 1)
    assert (event.failing, event.reporting, event.at) == (3, 6, NOW + 1)
    assert guard.suspended


@pytest.mark.parametrize(
    "outcome", sorted(set(Outcome) - set(OUTAGES) - {Outcome.PARSE_FAILURE}, key=str)
)
def test_block_is_never_an_outage(outcome):
    """Captchas and refusals mean that the site works, and knows the cell."""
    guard = OutageGuard()
    fail(guard, "abcdef", outcome, times=50)
    assert guard.check(NOW) == []
    assert not guard.suspended


def test_fewer_than_half_is_no_outage():
    """Three of seven have a fault of their own."""
    guard = OutageGuard()
    fail(guard, "abc")
    fail(guard, "defg", Outcome.OK)
    assert guard.check(NOW) == []


def test_two_cells_are_no_outage():
    """With so few, one bad cell would already be half of them."""
    guard = OutageGuard()
    fail(guard, "ab", times=50)
    assert guard.check(NOW) == []


def test_single_failure_does_not_make_a_cell_fail():
    """One timeout happens to everybody."""
    guard = OutageGuard()
    fail(guard, "abcdef", times=1)
    assert guard.check(NOW) == []


def test_fine_answer_clears_a_cell():
    """A cell that gets through does not fail, however often it did before."""
    guard = OutageGuard()
    fail(guard, "abc", times=9)
    guard.note("c", Outcome.OK, NOW)
    assert guard.check(NOW) == []


def test_failures_count_for_a_minute():
    """What failed a minute ago says nothing about now."""
    guard = OutageGuard()
    fail(guard, "abc")
    assert guard.check(NOW + 60) == []


def test_silent_cells_do_not_report():
    """Cells without work neither vote for nor against an outage."""
    guard = OutageGuard()
    fail(guard, "defghijk", Outcome.OK, now=NOW - 61)
    fail(guard, "abc")
    assert kinds(guard.check(NOW)) == ["OutageSuspected"]


@pytest.mark.parametrize("outcome", [Outcome.TIMEOUT, Outcome.PARSE_FAILURE])
def test_old_failures_of_cells_that_are_blocked_now_do_not_count(outcome):
    """A captcha now is no outage, whatever failed long before it."""
    guard = OutageGuard()
    fail(guard, "abc", outcome)
    fail(guard, "abc", Outcome.CAPTCHA, now=NOW + 1000)
    assert guard.check(NOW + 1000) == []


def test_outage_is_told_once():
    """The next look finds nothing new."""
    guard = in_outage()
    fail(guard, "abcdef", now=NOW + 5)
    assert guard.check(NOW + 5) == []
    assert guard.suspended


def test_outage_ends_when_a_failing_cell_gets_through():
    """One answer is enough: target and gateway are back."""
    guard = in_outage()
    guard.note("b", Outcome.OK, NOW + 90)
    (event,) = guard.check(NOW + 91)
    assert event.seconds == 91
    assert not guard.suspended
    assert guard.check(NOW + 92) == []


def test_outage_is_not_ended_by_a_cell_that_never_failed():
    """Half of the gateways may work all the time."""
    guard = OutageGuard()
    fail(guard, "abc")
    guard.note("d", Outcome.OK, NOW)
    guard.check(NOW)
    guard.note("d", Outcome.OK, NOW + 10)
    fail(guard, "a", now=NOW + 10)
    assert guard.check(NOW + 10) == []
    assert guard.suspended


def test_old_failures_do_not_start_the_next_outage():
    """After one has ended, cells have to fail anew."""
    guard = in_outage()
    guard.note("a", Outcome.OK, NOW + 10)
    assert kinds(guard.check(NOW + 10)) == ["OutageEnded"]
    fail(guard, "a", now=NOW + 11)
    assert guard.check(NOW + 11) == []
    fail(guard, "abc", now=NOW + 12)
    assert kinds(guard.check(NOW + 12)) == ["OutageSuspected"]


def test_outage_ends_when_nobody_reports():
    """Without anybody at work there is nothing to suspend."""
    guard = in_outage()
    assert kinds(guard.check(NOW + 61)) == ["OutageEnded"]


def test_parse_failures_everywhere_are_a_change_of_the_site():
    """It is told once, suspends, and is no outage."""
    guard = OutageGuard()
    fail(guard, "abc", Outcome.PARSE_FAILURE)
    assert kinds(guard.check(NOW)) == ["SiteChangeSuspected"]
    assert guard.suspended
    assert guard.check(NOW + 1) == []


def test_change_of_the_site_ends_when_callbacks_work_again():
    """Fewer than half of the cells fail: the levers work again."""
    guard = OutageGuard()
    fail(guard, "abc", Outcome.PARSE_FAILURE)
    guard.check(NOW)
    guard.note("a", Outcome.OK, NOW + 5)
    assert guard.check(NOW + 5) == []
    assert not guard.suspended


def test_ten_thousand_cells_are_counted_right():
    """One cell below half is none, one more is one."""
    guard = OutageGuard()
    cells = [str(number) for number in range(10_000)]
    fail(guard, cells[:5000], Outcome.OK, times=1)
    fail(guard, cells[5000:-1])
    assert guard.check(NOW) == []
    fail(guard, cells[-1:])
    assert kinds(guard.check(NOW)) == ["OutageSuspected"]


def test_note_tells_when_it_is_time_to_look():
    """The cell that makes it half of all asks for the check before it acts itself."""
    guard = OutageGuard()
    fine = [guard.note(cell, Outcome.OK, NOW) for cell in "wxyz"]
    first = [guard.note(cell, Outcome.TIMEOUT, NOW) for cell in "abcd"]
    second = [guard.note(cell, Outcome.TIMEOUT, NOW) for cell in "abcd"]
    assert not any(fine + first)
    assert second == [False, False, False, True]
    assert kinds(guard.check(NOW)) == ["OutageSuspected"]


def test_suspicion_ends_when_most_cells_are_fine_after_all():
    """A few cells that fail first, before others report, are no outage for long."""
    guard = OutageGuard()
    fail(guard, "abc", Outcome.CONNECTION)
    assert kinds(guard.check(NOW)) == ["OutageSuspected"]
    for cell in "stuvwxyz":
        guard.note(cell, Outcome.OK, NOW + 1)
    assert kinds(guard.check(NOW + 1)) == ["OutageEnded"]
    assert not guard.suspended
