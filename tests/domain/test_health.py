"""The decaying score and the shares of outcomes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_cells.domain.health import Health
from scrapy_cells.domain.outcome import Outcome

NOW = 1.8e9
SOFT = [
    Outcome.RATE_LIMITED,
    Outcome.SERVER_ERROR,
    Outcome.TIMEOUT,
    Outcome.CONNECTION,
    Outcome.PROXY_ERROR,
    Outcome.EMPTY,
    Outcome.PARSE_FAILURE,
]


def new_health() -> Health:
    return Health(0.25, 0.10, 0.05)


@pytest.mark.parametrize("outcome", [Outcome.CAPTCHA, Outcome.BLOCKED], ids=str)
def test_refusal_costs_a_quarter(outcome):
    """A captcha or a refusal leaves three quarters, and says so."""
    health = new_health()
    assert health.apply(outcome) == health.score == 0.75


@pytest.mark.parametrize("outcome", SOFT, ids=str)
def test_other_failure_costs_a_tenth(outcome):
    """Any other failure leaves nine tenths, and says so."""
    health = new_health()
    assert health.apply(outcome) == health.score == 0.9


def test_fine_answer_gives_a_little_back():
    """An ok costs nothing, adds the recovery, and stops at 1."""
    health = new_health()
    health.apply(Outcome.CAPTCHA)
    assert health.apply(Outcome.OK) == 1.0
    assert health.score == pytest.approx(0.8)
    for _ in range(10):
        health.apply(Outcome.OK)
    assert health.score == 1.0


def test_neutral_says_nothing():
    """A request that was dropped neither costs nor recovers."""
    health = new_health()
    health.apply(Outcome.CAPTCHA)
    assert health.apply(Outcome.NEUTRAL) == 1.0
    assert health.score == 0.75


@pytest.mark.parametrize(
    ("outcome", "count", "score"),
    [(Outcome.CAPTCHA, 3, 0.42), (Outcome.EMPTY, 7, 0.478)],
)
def test_health_falls_below_half_when_the_defaults_say(outcome, count, score):
    """Three captchas or seven soft failures in a row retire a cohort, not one less."""
    health = new_health()
    for _ in range(count - 1):
        health.apply(outcome)
    assert health.score >= 0.5
    health.apply(outcome)
    assert health.score == pytest.approx(score, abs=0.002)


def test_restore_gives_back_what_the_replaced_session_cost():
    """With the session to blame gone, the score is as if it had never failed."""
    health = new_health()
    health.apply(Outcome.EMPTY)
    blame = health.apply(Outcome.CAPTCHA) * health.apply(Outcome.CAPTCHA)
    health.restore(blame)
    assert health.score == pytest.approx(0.9)


@pytest.mark.parametrize("factor", [0.1, 0.0])
def test_restore_stops_at_full_health(factor):
    """A factor that explains more than was lost, or all of it, gives 1."""
    health = new_health()
    health.apply(Outcome.CAPTCHA)
    health.restore(factor)
    assert health.score == 1.0


def test_reset_is_full_health():
    """A new cohort starts at 1."""
    health = new_health()
    health.apply(Outcome.CAPTCHA)
    health.reset()
    assert health.score == 1.0


@given(
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.lists(st.sampled_from(Outcome), max_size=60),
)
def test_score_stays_in_bounds(captcha, failure, recovery, outcomes):
    """Whatever comes, score and factor lie within [0, 1]."""
    health = Health(captcha, failure, recovery)
    for outcome in outcomes:
        before = health.score
        factor = health.apply(outcome)
        assert 0.0 <= health.score <= 1.0
        assert 0.0 <= factor <= 1.0
        if outcome.is_failure:
            assert health.score == pytest.approx(before * factor)


@given(st.lists(st.sampled_from([o for o in Outcome if o.is_failure]), max_size=30))
def test_restore_undoes_any_run_of_failures(outcomes):
    """The product of the factors of a run leads back to where it began."""
    health = new_health()
    health.apply(Outcome.EMPTY)
    blame = 1.0
    for outcome in outcomes:
        blame *= health.apply(outcome)
    health.restore(blame)
    assert health.score == pytest.approx(0.9)


# Shares


def test_share_of_nothing_is_nothing():
    """Before any outcome every share is 0."""
    assert new_health().share(Outcome.CAPTCHA) == 0.0


def test_share_is_of_what_happened_lately():
    """Two captchas in five outcomes of one moment are 40 %."""
    health = new_health()
    for outcome in [Outcome.CAPTCHA] * 2 + [Outcome.OK] * 3:
        health.note(outcome, NOW)
    assert health.share(Outcome.CAPTCHA) == pytest.approx(0.4)
    assert health.share(Outcome.TIMEOUT) == 0.0


def test_outcome_counts_half_after_ten_minutes():
    """A captcha of ten minutes ago weighs half of an answer of now."""
    health = new_health()
    health.note(Outcome.CAPTCHA, NOW)
    health.note(Outcome.OK, NOW + 600)
    assert health.share(Outcome.CAPTCHA) == pytest.approx(1 / 3)


def test_clock_that_steps_back_fades_nothing():
    """A step back neither raises an error nor makes an outcome weigh more."""
    health = new_health()
    health.note(Outcome.CAPTCHA, NOW)
    health.note(Outcome.OK, NOW - 6000)
    assert health.share(Outcome.CAPTCHA) == pytest.approx(0.5)


@given(
    st.lists(
        st.tuples(st.sampled_from(Outcome), st.floats(-1e3, 1e9)),
        min_size=1,
        max_size=40,
    )
)
def test_shares_add_up_to_one(notes):
    """After any notes, at any times, the shares are finite and make up the whole."""
    health = new_health()
    now = NOW
    for outcome, step in notes:
        now += step
        health.note(outcome, now)
    shares = [health.share(outcome) for outcome in Outcome]
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert sum(shares) == pytest.approx(1.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.1])
@pytest.mark.parametrize("name", ["captcha_penalty", "failure_penalty", "recovery"])
def test_bad_share_is_refused(name, value):
    """What is no share of 1 is refused, and the message names the field."""
    numbers = {"captcha_penalty": 0.25, "failure_penalty": 0.1, "recovery": 0.05}
    with pytest.raises(ValueError, match=name):
        Health(**{**numbers, name: value})
