"""Backoff, Retry-After and the retry budget."""

from __future__ import annotations

import math
import random
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_cells.domain.retry import RetryBudget, backoff, parse_retry_after

NOW = 1_800_000_000.0
WEEK = 7 * 86400.0


def http_date(seconds: float) -> str:
    return formatdate(seconds, usegmt=True)


# Backoff


@given(
    st.integers(0, 5000),
    st.floats(0, 100),
    st.floats(0, 1000),
    st.integers(0, 99),
    st.none() | st.floats(0, WEEK),
)
def test_delay_lies_between_its_floor_and_its_ceiling(
    attempt, base, ceiling, seed, floor
):
    """Never before Retry-After, never after the doubled base, the maximum or that."""
    delay = backoff(attempt, base, ceiling, random.Random(seed), floor)
    jitter = min(ceiling, base * 2.0 ** min(attempt, 60))
    assert (floor or 0.0) <= delay <= max(jitter, floor or 0.0)


@pytest.mark.parametrize(("attempt", "mean"), [(0, 0.5), (1, 1), (3, 4), (9, 30)])
def test_jitter_is_full(attempt, mean):
    """Delays spread evenly from 0 to the ceiling of the attempt."""
    rng = random.Random(3)
    delays = [backoff(attempt, 1, 60, rng) for _ in range(4000)]
    assert sum(delays) / 4000 == pytest.approx(mean, rel=0.05)
    assert min(delays) < 0.02 * mean
    assert max(delays) > 1.96 * mean


def test_same_seed_gives_the_same_delays():
    """Chance comes only from the generator that is handed in."""
    one, other = ([backoff(n, 1, 60, r) for n in range(9)] for r in twins())
    assert one == other


def twins() -> tuple[random.Random, random.Random]:
    return random.Random(5), random.Random(5)


def test_long_retry_after_is_kept_in_full():
    """A server's wait is never cut to the maximum delay."""
    assert backoff(0, 1, 60, random.Random(1), 7200.0) == 7200.0


# Retry-After


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        (b"2", 2.0),
        (" 2 ", 2.0),
        ("1.5", 1.5),
        ("3.0", 3.0),
        ("3.", 3.0),
        ("007", 7.0),
        ("604800", WEEK),
        ("604801", WEEK),
        ("9999999999", WEEK),
        ("9" * 5000, WEEK),
        (http_date(NOW + 2), 2.0),
        (http_date(NOW + 2).encode(), 2.0),
        (http_date(NOW + 90 * 86400), WEEK),
        ("Friday, 15-Jan-27 08:00:30 GMT", 30.0),
        ("Fri Jan 15 08:00:30 2027", 30.0),
        ("Fri, 15 Jan 2027 10:00:30 +0200", 30.0),
    ],
)
def test_usable_value(value, seconds):
    """Whole and broken seconds and dates of all kinds are read, at most a week."""
    assert parse_retry_after([value], None, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "0",
        "0.0",
        "-5",
        "+5",
        "soon",
        "nan",
        "inf",
        "1e3",
        "0x10",
        ".5",
        "1,5",
        "2 s",
        "\u0663",
        "\u00b2",
        b"\xff\xfe",
        http_date(NOW - 60),
        http_date(NOW),
        "Wed, 99 Foo 2027",
        "Fri, 15 Jan 99999 08:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 +2359",
    ],
)
def test_unusable_value_is_absent(value):
    """Zero, negative, past and unreadable values are as if there were no header."""
    assert parse_retry_after([value], None, NOW) is None


def test_no_header_is_absent():
    """Without a value there is nothing to wait for."""
    assert parse_retry_after([], http_date(NOW), NOW) is None


def test_longest_of_several_headers_counts():
    """Among several headers the bad ones are skipped and the longest wait is kept."""
    values = ["-5", b"7", "text", http_date(NOW + 30), "12"]
    assert parse_retry_after(values, None, NOW) == 30.0


@pytest.mark.parametrize("error", [-86400, 86400])
def test_date_is_relative_to_the_servers_clock(error):
    """A wrong clock, here or there, does no harm when the answer has a Date."""
    date = http_date(NOW + error)
    value = http_date(NOW + error + 20)
    assert parse_retry_after([value], date, NOW) == 20.0
    assert parse_retry_after([value], date.encode(), NOW) == 20.0


def test_unreadable_date_header_leaves_the_own_clock():
    """With a Date that is none, a date counts from now."""
    assert parse_retry_after([http_date(NOW + 20)], "yesterday", NOW) == 20.0


def test_seconds_do_not_depend_on_the_date_header():
    """Only dates are relative to the server's clock."""
    assert parse_retry_after(["5"], http_date(NOW - 9999), NOW) == 5.0


date_like = st.builds(
    "{}, {} {} {} {}:{}:{} {}".format,
    st.sampled_from(["Fri", "Friday", ""]),
    st.integers(-1, 99),
    st.sampled_from(["Jan", "Feb", "Foo", "13"]),
    st.integers(-1, 99999),
    st.integers(-1, 99),
    st.integers(-1, 99),
    st.integers(-1, 99),
    st.sampled_from(["GMT", "+9999", "-0000", "+2359", ""]),
)
anything = st.one_of(st.text(max_size=40), st.binary(max_size=40), date_like)


@given(st.lists(anything, max_size=4), st.none() | anything)
def test_no_header_makes_it_raise(values, date):
    """Whatever a server sends, the answer is a wait of up to a week, or none."""
    seconds = parse_retry_after(values, date, NOW)
    assert seconds is None or 0.0 < seconds <= WEEK


# Budget


def spend_all(budget: RetryBudget) -> int:
    spent = 0
    while budget.spend():
        spent += 1
    return spent


def test_reserve_is_there_from_the_start():
    """A cell that has sent nothing yet may retry ten times."""
    assert spend_all(RetryBudget()) == 10


@pytest.mark.parametrize(
    ("first", "retries"), [(49, 10), (54, 10), (55, 11), (500, 100)]
)
def test_budget_is_a_fifth_of_the_first_attempts(first, retries):
    """Beyond the reserve a cell has one retry for five first attempts, and no more."""
    budget = RetryBudget()
    for _ in range(first):
        budget.first_attempt()
    assert spend_all(budget) == retries


def test_refused_retry_costs_nothing():
    """Asking an empty budget again and again leaves what is earned later."""
    budget = RetryBudget(0.5, 0)
    assert not any(budget.spend() for _ in range(100))
    budget.first_attempt()
    budget.first_attempt()
    assert spend_all(budget) == 1


def test_nothing_allowed_is_nothing_spent():
    """No share and no reserve is no retry."""
    budget = RetryBudget(0.0, 0)
    budget.first_attempt()
    assert not budget.spend()


@given(st.floats(0, 1), st.integers(0, 20), st.lists(st.booleans(), max_size=200))
def test_retries_never_exceed_their_share(share, reserve, steps):
    """After any mixture, retries are within the larger of reserve and share."""
    budget = RetryBudget(share, reserve)
    first = spent = 0
    for is_first in steps:
        if is_first:
            budget.first_attempt()
            first += 1
        else:
            spent += budget.spend()
        assert spent <= max(reserve, share * first)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1])
def test_bad_share_is_refused(value):
    """What is no share of 1 is refused."""
    with pytest.raises(ValueError, match="must lie between"):
        RetryBudget(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1])
def test_bad_reserve_is_refused(value):
    """NaN, inf and negative reserves are refused."""
    with pytest.raises(ValueError, match="reserve"):
        RetryBudget(0.2, value)
