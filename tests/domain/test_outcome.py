"""The kinds of outcome and what each speaks against."""

from __future__ import annotations

import dataclasses

import pytest

from scrapy_cells.domain.outcome import Outcome, Verdict

TABLE = {
    # outcome: (value, block, failure, outage, strikes the session)
    Outcome.OK: ("ok", False, False, False, False),
    Outcome.CAPTCHA: ("captcha", True, True, False, True),
    Outcome.RATE_LIMITED: ("rate_limited", False, True, False, False),
    Outcome.BLOCKED: ("blocked", True, True, False, True),
    Outcome.SOFT_BLOCK: ("soft_block", True, True, False, True),
    Outcome.SERVER_ERROR: ("server_error", False, True, True, False),
    Outcome.TIMEOUT: ("timeout", False, True, True, True),
    Outcome.CONNECTION: ("connection", False, True, True, True),
    Outcome.PROXY_ERROR: ("proxy_error", False, True, True, True),
    Outcome.EMPTY: ("empty", False, True, False, False),
    Outcome.PARSE_FAILURE: ("parse_failure", False, True, False, False),
    Outcome.NEUTRAL: ("neutral", False, False, False, False),
}


def test_table_names_every_outcome():
    """A new outcome has to be placed in the table."""
    assert set(TABLE) == set(Outcome)


@pytest.mark.parametrize("outcome", list(Outcome), ids=str)
def test_outcome_speaks_against_what_it_should(outcome):
    """Each outcome has the value and the four properties of the table."""
    found = (
        outcome.value,
        outcome.is_block,
        outcome.is_failure,
        outcome.is_outage,
        outcome.strikes_session,
    )
    assert found == TABLE[outcome]


@pytest.mark.parametrize("outcome", list(Outcome), ids=str)
def test_text_of_an_outcome_is_its_value(outcome):
    """Stats keys and log lines show the bare word on every Python version."""
    assert str(outcome) == f"{outcome}" == f"{outcome!s}" == outcome.value


def test_no_block_is_an_outage():
    """A refusal is meant for this visitor and never taken for a fault of the site."""
    assert not [o for o in Outcome if o.is_block and o.is_outage]


def test_verdict_is_a_value():
    """A verdict cannot be changed, compares by content and needs only an outcome."""
    verdict = Verdict(Outcome.BLOCKED)
    assert (verdict.vendor, verdict.rule, verdict.place) == ("", "", "")
    assert verdict == Verdict(Outcome.BLOCKED)
    assert not hasattr(verdict, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.outcome = Outcome.OK
