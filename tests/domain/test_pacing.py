"""Warm-up and ramp."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_cells.domain.pacing import Pacing

NOW = 1.8e9

moments = st.floats(-100, 1000)
lengths = st.floats(0, 400)
floors = st.floats(0.01, 1)


def test_full_pace_where_nothing_was_started():
    """A cell that was never in trouble has its whole budget."""
    pacing = Pacing(0.25, 300, 300)
    assert pacing.factor(NOW) == 1.0
    assert pacing.done(NOW)


def test_warm_up_holds_the_floor_and_then_steps():
    """A new cohort gets the floor until the last moment of its warm-up."""
    pacing = Pacing(0.25, 300, 300)
    pacing.warm_up(NOW)
    assert pacing.factor(NOW) == pacing.factor(NOW + 299.999) == 0.25
    assert pacing.factor(NOW + 300) == 1.0
    assert not pacing.done(NOW + 299.999)
    assert pacing.done(NOW + 300)


@pytest.mark.parametrize(("age", "factor"), [(0, 0.25), (100, 0.5), (200, 0.75)])
def test_ramp_rises_in_a_line(age, factor):
    """After a breaker closed the factor grows evenly from the floor to 1."""
    pacing = Pacing(0.25, 300, 300)
    pacing.start_ramp(NOW)
    assert pacing.factor(NOW + age) == pytest.approx(factor)
    assert not pacing.done(NOW + age)
    assert pacing.factor(NOW + 300) == 1.0


def test_the_smaller_factor_counts():
    """A warm-up during a ramp holds the floor however far the ramp has come."""
    pacing = Pacing(0.25, 100, 300)
    pacing.start_ramp(NOW)
    pacing.warm_up(NOW + 150)
    assert pacing.factor(NOW + 200) == 0.25
    assert pacing.factor(NOW + 250) == pytest.approx(0.25 + 0.75 * 250 / 300)


def test_second_ramp_starts_over():
    """A trip during the ramp makes the next ramp begin at the floor."""
    pacing = Pacing(0.25, 300, 300)
    pacing.start_ramp(NOW)
    pacing.start_ramp(NOW + 200)
    assert pacing.factor(NOW + 200) == 0.25
    assert pacing.factor(NOW + 499) < 1.0


def test_reset_gives_the_full_pace():
    """After a reset neither warm-up nor ramp is left."""
    pacing = Pacing(0.25, 300, 300)
    pacing.warm_up(NOW)
    pacing.start_ramp(NOW)
    pacing.reset()
    assert pacing.done(NOW)


@pytest.mark.parametrize("start", ["warm_up", "start_ramp"])
def test_no_length_is_no_pacing(start):
    """A warm-up or ramp of 0 seconds divides by nothing and is over at once."""
    pacing = Pacing(0.25, 0, 0)
    getattr(pacing, start)(NOW)
    assert pacing.factor(NOW) == 1.0


def test_ramp_of_nothing_has_no_past_either():
    """With no ramp, a clock that is behind the closing of the breaker does no harm."""
    pacing = Pacing(0.25, 0, 0)
    pacing.start_ramp(NOW)
    assert pacing.factor(NOW - 10) == 1.0


def test_asking_does_not_forget():
    """Asking whether it is done leaves the past as it was, for who accounts later."""
    pacing = Pacing(0.25, 300, 300)
    pacing.warm_up(NOW)
    assert pacing.done(NOW + 301)
    assert pacing.factor(NOW + 10) == 0.25


def test_interval_is_cut_where_the_factor_jumps():
    """An interval over the end of a warm-up comes in two pieces, any other in one."""
    pacing = Pacing(0.25, 300, 300)
    pacing.warm_up(NOW)
    assert list(pacing.steps(NOW, NOW + 400)) == [
        (NOW, NOW + 300, 0.25),
        (NOW + 300, NOW + 400, 1.0),
    ]
    assert list(pacing.steps(NOW, NOW + 300)) == [(NOW, NOW + 300, 0.25)]
    assert list(pacing.steps(NOW + 300, NOW + 400)) == [(NOW + 300, NOW + 400, 1.0)]


@given(floors, lengths, lengths, moments, moments, st.lists(moments, min_size=2))
def test_factor_stays_in_bounds_and_never_falls(floor, warmup, ramp, warm, up, times):
    """Between two resets the factor only grows, and stays within [floor, 1]."""
    pacing = Pacing(floor, warmup, ramp)
    pacing.warm_up(warm)
    pacing.start_ramp(up)
    factors = [pacing.factor(time) for time in sorted(times)]
    assert factors == sorted(factors)
    assert all(floor <= factor <= 1.0 for factor in factors)


@given(floors, st.floats(1, 400), st.floats(0, 500), st.floats(0, 1))
def test_ramp_is_continuous(floor, ramp, moment, step):
    """The ramp has no jump: the factor grows by no more than the slope allows."""
    pacing = Pacing(floor, 0, ramp)
    pacing.start_ramp(0)
    grown = pacing.factor(moment + step) - pacing.factor(moment)
    assert grown <= (1 - floor) / ramp * step + 1e-9


@given(floors, lengths, lengths, moments, moments, moments, moments)
def test_pieces_cover_the_interval_at_no_more_than_its_factor(
    floor, warmup, ramp, warm, up, one, other
):
    """The pieces join without a gap and none has more than the factor at its start."""
    pacing = Pacing(floor, warmup, ramp)
    pacing.warm_up(warm)
    pacing.start_ramp(up)
    start, end = sorted((one, other))
    pieces = list(pacing.steps(start, end))
    assert (pieces[0][0], pieces[-1][1]) == (start, end)
    assert all(left[1] == right[0] for left, right in pairwise(pieces))
    assert all(factor == pacing.factor(begin) for begin, _, factor in pieces)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, 0.0, 1.5])
def test_bad_floor_is_refused(value):
    """A floor must lie above 0, or a cell would stop for good, and not above 1."""
    with pytest.raises(ValueError, match="floor"):
        Pacing(value, 300, 300)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("name", ["warmup", "ramp"])
def test_bad_length_is_refused(name, value):
    """NaN, inf and negative seconds are refused, and the message names the field."""
    with pytest.raises(ValueError, match=name):
        Pacing(**{"floor": 0.25, "warmup": 300, "ramp": 300, name: value})
