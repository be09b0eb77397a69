"""The token bucket: never over budget, never stuck, never spinning."""

from __future__ import annotations

import math
from bisect import insort

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_cells.domain.bucket import TokenBucket
from scrapy_cells.domain.pacing import Pacing

NOW = 1.8e9
"""Epoch seconds as they are: one step of a float is 2.4e-7 s here."""


def no_pacing() -> Pacing:
    return Pacing(0.25, 300, 300)


def bucket_of(rate: float, burst: float, tokens: float | None = None) -> TokenBucket:
    return TokenBucket(rate, burst, NOW, no_pacing(), tokens=tokens)


def drain(bucket: TokenBucket, now: float) -> int:
    """Take all there is; return how many."""
    taken = 0
    while bucket.take(now):
        taken += 1
    return taken


# Plain cases


def test_burst_then_steady():
    """A full bucket gives its burst at once and then one token each 1 / rate."""
    bucket = bucket_of(0.5, 5)
    assert drain(bucket, NOW) == 5
    times, now = [], NOW
    for _ in range(10):
        now = bucket.ready_at(now)
        assert bucket.take(now)
        times.append(now - NOW)
    assert times == pytest.approx([2.0 * n for n in range(1, 11)], abs=1e-5)


def test_bucket_never_holds_more_than_a_burst():
    """A day of idleness, or a clock that leaps, is worth one burst."""
    bucket = bucket_of(0.5, 5)
    drain(bucket, NOW)
    assert drain(bucket, NOW + 86400) == 5


def test_clock_that_steps_back_issues_nothing():
    """Time that was already paid for is not paid again."""
    bucket = bucket_of(1, 5)
    drain(bucket, NOW)
    assert not bucket.take(NOW - 3600)
    assert not bucket.take(NOW + 0.5)
    assert drain(bucket, NOW + 1) == 1


def test_clock_that_steps_back_does_not_freeze_the_bucket():
    """The token comes when the clock has caught up, and ready_at says when."""
    bucket = bucket_of(1, 1)
    drain(bucket, NOW)
    due = bucket.ready_at(NOW - 100)
    assert due == pytest.approx(NOW + 1, abs=1e-5)
    assert bucket.take(due)


def test_rate_of_nothing_issues_what_is_there():
    """Rate 0 never divides by zero: the start tokens go, and then it is never."""
    bucket = bucket_of(0, 2)
    assert drain(bucket, NOW) == 2
    assert bucket.ready_at(NOW + 1e6) == math.inf


def test_tiniest_rate_overflows_to_never():
    """A rate so small that its reciprocal is no number means never, not an error."""
    bucket = bucket_of(5e-324, 1)
    drain(bucket, NOW)
    assert bucket.ready_at(NOW) == math.inf


@pytest.mark.parametrize("rate", [1e-6, 1e-3, 0.5, 3.0, 1e3, 1e6])
def test_timer_at_ready_at_succeeds(rate):
    """Whoever waits until ready_at gets a token after at most a few looks."""
    bucket = bucket_of(rate, 1)
    now = NOW
    for _ in range(200):
        looks = 0
        while (due := bucket.ready_at(now)) > now:
            now, looks = due, looks + 1
        assert looks <= 2
        assert bucket.take(now)


def test_ready_at_moves_by_a_float_at_least():
    """When less than a step of the clock is missing the answer is the next step."""
    bucket = bucket_of(1e6, 1, tokens=0.9)
    due = bucket.ready_at(NOW)
    assert due == math.nextafter(NOW, math.inf)


@pytest.mark.parametrize(("missing", "given"), [(5e-7, True), (2e-6, False)])
def test_tolerance_is_a_millionth_of_a_token(missing, given):
    """What rounding of the clock can lose is forgiven, and no more than that."""
    assert bucket_of(0, 1, tokens=1.0 - missing).take(NOW) == given


def test_asking_changes_nothing():
    """Any number of questions at one time leave the answer and the tokens alone."""
    bucket = bucket_of(1, 2)
    drain(bucket, NOW)
    first = bucket.ready_at(NOW + 0.5)
    assert {bucket.ready_at(NOW + 0.5) for _ in range(1000)} == {first}
    assert not bucket.take(NOW + 0.5)
    assert drain(bucket, NOW + 1) == 1


def test_million_takes_in_one_instant_give_one_burst():
    """However often it is asked at one time, a bucket gives its burst and no more."""
    bucket = bucket_of(1000, 5)
    assert sum(bucket.take(NOW) for _ in range(1_000_000)) == 5


def test_many_takes_do_not_drift():
    """Over 400,000 timed takes not a thousandth of a token is won or lost.

    The burst leaves room, since one of 1 has to drop what comes after the due time.
    """
    bucket = bucket_of(7.3, 2, tokens=0)
    takes, now = 0, NOW
    ready_at, take = bucket.ready_at, bucket.take
    while takes < 400_000:
        now = ready_at(now)
        takes += take(now)
    issued = 7.3 * (now - NOW)
    assert takes + bucket.tokens == pytest.approx(issued, abs=1e-3)


def test_single_ticks_do_not_drift():
    """Refilled by a hair each time, a bucket still issues what a whole span is due."""
    bucket = bucket_of(0.1, 5, tokens=0)
    step = 2.0**-6
    for tick in range(1, 64 * 40 + 1):
        bucket.ready_at(NOW + tick * step)
    assert bucket.tokens == pytest.approx(4.0, abs=1e-6)


def test_refund_storm_stops_at_the_burst():
    """No number of refunds makes more than a burst."""
    bucket = bucket_of(0, 5)
    for _ in range(1000):
        bucket.refund(NOW)
    assert drain(bucket, NOW) == 5


def test_refund_gives_back_what_was_taken():
    """A request that was never sent costs nothing."""
    bucket = bucket_of(0, 5)
    for _ in range(1000):
        assert bucket.take(NOW)
        bucket.refund(NOW)
    assert drain(bucket, NOW) == 5


def test_refund_of_a_token_that_would_have_overflowed_is_lost():
    """A bucket that filled up meanwhile would hold no more without that request."""
    bucket = bucket_of(0.5, 5)
    assert bucket.take(NOW)
    assert drain(bucket, NOW + 2) == 5
    bucket.refund(NOW)
    assert drain(bucket, NOW + 2) == 0


def test_rate_change_issues_the_past_at_the_old_rate():
    """A higher rate counts from now on, not from the last look."""
    bucket = bucket_of(0.1, 5, tokens=0)
    bucket.set_rate(1000, 5, NOW + 10)
    assert bucket.tokens == pytest.approx(1.0)


def test_lower_burst_cuts_at_once():
    """Tokens above a lowered burst are gone, and a raised one gives none."""
    bucket = bucket_of(0, 5)
    bucket.set_rate(0, 2, NOW)
    assert bucket.tokens == 2
    bucket.set_rate(0, 9, NOW)
    assert drain(bucket, NOW) == 2


def test_saved_tokens_are_no_fresh_burst():
    """A restart starts with what was left, and with a burst at the most."""
    assert bucket_of(0, 5, tokens=1.5).tokens == 1.5
    assert bucket_of(0, 5, tokens=0.0).tokens == 0.0
    assert bucket_of(0, 5, tokens=80.0).tokens == 5


# Pacing


def warming(rate: float, burst: float) -> TokenBucket:
    pacing = no_pacing()
    bucket = TokenBucket(rate, burst, NOW, pacing)
    pacing.warm_up(NOW)
    bucket.cut(NOW)
    return bucket


def test_warm_up_cuts_rate_and_burst():
    """A warming cell has one token at most and a quarter of the rate."""
    bucket = warming(1, 5)
    assert drain(bucket, NOW) == 1
    assert bucket.ready_at(NOW) == pytest.approx(NOW + 4, abs=1e-5)
    assert drain(bucket, NOW + 200) == 1


def test_refill_over_the_end_of_the_warm_up_comes_in_two_pieces():
    """The seconds before the end count at the floor, those after it in full."""
    bucket = warming(0.01, 5)
    drain(bucket, NOW)
    bucket.ready_at(NOW + 400)
    assert bucket.tokens == pytest.approx(0.25 * 300 * 0.01 + 100 * 0.01)


def test_another_reader_of_the_pacing_changes_no_account():
    """Whoever asks the pacing first, the warm-up's seconds count at the floor."""
    pacing = no_pacing()
    bucket = TokenBucket(0.01, 5, NOW, pacing)
    pacing.warm_up(NOW)
    bucket.cut(NOW)
    drain(bucket, NOW)
    assert pacing.done(NOW + 301)
    bucket.ready_at(NOW + 301)
    assert bucket.tokens == pytest.approx(0.25 * 300 * 0.01 + 0.01)


def test_refund_while_warming_stops_at_one_token():
    """A refund is no way around the burst of 1 of a warming cell."""
    bucket = warming(1, 5)
    assert bucket.take(NOW)
    bucket.ready_at(NOW + 10)
    bucket.refund(NOW)
    assert drain(bucket, NOW + 10) == 1


def test_ramp_never_issues_more_than_its_area():
    """A ramp's refill uses the factor at the start, so it stays below the area."""
    pacing = no_pacing()
    bucket = TokenBucket(1, 1, NOW, pacing, tokens=0)
    pacing.start_ramp(NOW)
    bucket.cut(NOW)
    now, takes = NOW, 0
    while (due := bucket.ready_at(now)) <= NOW + 300:
        now = due
        takes += bucket.take(now)
    area = 300 * (0.25 + 1) / 2
    assert area * 0.9 < takes <= area


# The invariant

steps = st.one_of(
    st.tuples(st.just("take"), st.integers(1, 12)),
    st.tuples(st.just("ask"), st.none()),
    st.tuples(st.just("refund"), st.integers(0, 9)),
    st.tuples(st.just("clock"), st.floats(0, 30)),
    st.tuples(st.just("clock"), st.sampled_from([-3600.0, -1.0, 86400.0, 1e-7])),
    st.tuples(st.just("wait"), st.none()),
    st.tuples(
        st.just("set_rate"), st.tuples(st.sampled_from([0, 0.1, 2]), st.floats(1, 8))
    ),
    st.tuples(st.just("pause"), st.sampled_from(["warm_up", "start_ramp"])),
)


class Account:
    """A bucket, and the times at which it let something out that stayed out."""

    def __init__(self, rate: float, burst: float) -> None:
        self.pacing = no_pacing()
        self.bucket = TokenBucket(rate, burst, NOW, self.pacing)
        self.now = self.latest = NOW
        self.rate, self.burst = rate, burst
        self.admitted: list[float] = []

    def run(self, step: str, value: object) -> None:
        self.latest = max(self.latest, self.now)
        getattr(self, step)(value)
        self.latest = max(self.latest, self.now)

    def take(self, count: int) -> None:
        for _ in range(count):
            ready = self.bucket.ready_at(self.now)
            assert ready >= self.now
            taken = self.bucket.take(self.now)
            assert taken == (ready == self.now)
            if taken:
                # time as the bucket knows it: a step back is no time at all
                insort(self.admitted, self.latest)

    def ask(self, _: object) -> None:
        self.bucket.ready_at(self.now)

    def refund(self, which: int) -> None:
        if self.admitted:
            taken_at = self.admitted.pop(-1 - which % len(self.admitted))
            self.bucket.refund(taken_at)

    def clock(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, _: object) -> None:
        due = self.bucket.ready_at(self.now)
        if due < self.now + 1e6:
            self.now = due

    def set_rate(self, value: tuple[float, float]) -> None:
        rate, burst = value
        self.rate, self.burst = max(self.rate, rate), max(self.burst, burst)
        self.bucket.set_rate(rate, burst, self.now)

    def pause(self, start: str) -> None:
        getattr(self.pacing, start)(self.now)
        self.bucket.cut(self.now)

    def check(self, slack: float = 1e-6) -> None:
        times = self.admitted
        for i, first in enumerate(times):
            for j in range(i, len(times)):
                allowed = self.burst + self.rate * (times[j] - first)
                assert j - i + 1 <= allowed + slack


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([0, 0.5, 2]), st.floats(1, 8), st.lists(steps, max_size=40))
def test_no_window_holds_more_than_its_budget(rate, burst, done):
    """In every window at most burst + rate * w go out, whatever happens meanwhile."""
    account = Account(rate, burst)
    for step, value in done:
        account.run(step, value)
        assert -1e-6 <= account.bucket.tokens <= account.bucket.burst
    account.check()


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([0.5, 2]),
    st.floats(1, 8),
    st.lists(
        steps.filter(lambda step: step[0] in {"take", "ask", "refund", "wait"}),
        max_size=40,
    ),
)
def test_warm_up_keeps_to_the_factor_in_every_window(rate, burst, done):
    """While a cell warms up, the floor applies to the rate and the burst is 1."""
    account = Account(rate, burst)
    account.pacing.warmup = 1e9
    account.pause("warm_up")
    account.rate, account.burst = rate * 0.25, 1.0
    for step, value in done:
        account.run(step, value)
    account.check()


@given(st.floats(1e-6, 1e6), st.floats(1, 100), st.floats(0, 100))
def test_ready_at_is_now_exactly_if_a_take_would_succeed(rate, burst, tokens):
    """The answer is now, or later by at least one float; a timer cannot spin."""
    bucket = bucket_of(rate, burst, tokens=tokens)
    due = bucket.ready_at(NOW)
    assert due >= NOW
    assert bucket.take(NOW) == (due == NOW)


# Refusals

BAD = [math.nan, math.inf, -math.inf, -1.0]


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", ["rate", "burst", "tokens"])
def test_bad_number_is_refused_at_construction(name, value):
    """NaN, inf and negative numbers are refused, and the message names the field."""
    numbers = {"rate": 1.0, "burst": 5.0, "tokens": 1.0, name: value}
    with pytest.raises(ValueError, match=name):
        TokenBucket(now=NOW, pacing=no_pacing(), **numbers)


@pytest.mark.parametrize("burst", [0.0, 0.5, 0.999])
def test_burst_below_one_is_refused(burst):
    """A bucket that cannot hold a whole token would never give one."""
    with pytest.raises(ValueError, match="burst"):
        bucket_of(1, burst)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("name", ["rate", "burst"])
def test_bad_change_is_refused_whole(name, value):
    """A change with one bad number leaves rate and burst as they were."""
    bucket = bucket_of(1, 5)
    with pytest.raises(ValueError, match=name):
        bucket.set_rate(**{"rate": 3.0, "burst": 7.0, name: value}, now=NOW)
    assert (bucket.rate, bucket.burst) == (1, 5)
