"""What the site asks for with Retry-After is done."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from tests.crawl.common import HURT, crawl, keys, keys_by_cell, right_keys
from tests.harness.target import Reply

SOONER = 0.1
"""Seconds by which clocks and arrival may differ."""


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_cell_waits_as_long_as_it_was_asked_to_and_then_sends_one_first(
    site, reactor, form
):
    """The others go on meanwhile, and the 429 costs none of a request's tries."""
    first = []

    def respond(arrival):
        if arrival.cell != HURT:
            return None
        if not first:
            first.append(arrival)
        elif arrival.at - first[0].at > 0.7:
            reply = site.usual(arrival)
            reply.delay = 0.3 if len(after) == 0 else 0.0
            after.append(arrival)
            return reply
        value = "1"
        headers = {"Retry-After": value}
        if form == "date":
            headers = {"Date": formatdate(0, usegmt=True)}
            headers["Retry-After"] = formatdate(1, usegmt=True)
        return Reply(429, b"wait", headers)

    after = []
    site.respond = respond
    settings = {"CELLS_RETRY_TIMES": 0}
    crawled = crawl(site, settings, n=40, reactor=reactor)
    assert right_keys(crawled) == keys(40)
    hurt = [a for a in site.arrivals if a.cell == HURT]
    refused = [a for a in hurt if a.status == 429]
    # as many as were in flight, and none within the second
    assert 1 <= len(refused) <= 4
    assert len(hurt) == len(refused) + len(keys_by_cell(40)[HURT])
    assert after[0].at >= refused[0].at + 1 - SOONER
    # one first: the second comes when that was answered
    assert after[1].at >= after[0].at + 0.3
    assert crawled.event_types() == ["CellHeld"]
    others = [a.at for a in site.arrivals if a.cell != HURT]
    assert max(others) < after[0].at


def test_cell_that_was_asked_to_wait_an_hour_is_deferred(site, reactor):
    """It is not hammered, and the crawl ends when the others are done."""
    site.respond = lambda a: (
        Reply(429, b"wait", {"Retry-After": "3600"}) if a.cell == HURT else None
    )
    crawled = crawl(site, n=40, reactor=reactor)
    mine = keys_by_cell(40)[HURT]
    assert crawled.reason == "cells_deferred"
    assert right_keys(crawled) == [k for k in keys(40) if k not in mine]
    assert 1 <= sum(a.cell == HURT for a in site.arrivals) <= 4
    assert crawled.stats["cells/deferred_count"] == len(mine)
    assert crawled.stats["cells/hole_count/deferred"] == len(mine)
    assert crawled.stats[f"cells/by_cell/{HURT}/state"] == "held"
