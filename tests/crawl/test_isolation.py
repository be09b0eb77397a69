"""One hurt cell: the others do not notice, and little is spent on it."""

from __future__ import annotations

import pytest

from tests.crawl.common import (
    COUNT,
    HTML,
    HURT,
    captcha,
    crawl,
    keys_by_cell,
    right_keys,
)
from tests.harness.target import Reply

FAULTS = {
    "hang": ("http", Reply(fault="hang"), "timeout"),
    "hang at CONNECT": ("https", "hang", "timeout"),
    "reset": ("http", Reply(fault="reset"), "connection"),
    "407 at CONNECT": ("https", "407", "proxy_error"),
    "captcha 200": ("http", captcha(200), "captcha"),
    "captcha 503": ("http", captcha(503), "captcha"),
    "429": ("http", Reply(429, b"slow down"), "rate_limited"),
    "403": ("http", Reply(403, b"no", HTML), "blocked"),
    "503": ("http", Reply(503, b"down", HTML), "server_error"),
}
MOST_SPENT = 30


@pytest.mark.parametrize("fault", FAULTS)
def test_hurt_cell_hurts_nobody_else(site, reactor, fault):
    """All keys of the healthy cells become right rows, from first tries."""
    scheme, trouble, outcome = FAULTS[fault]
    if isinstance(trouble, str):
        site.gate = lambda k: trouble if f"u-{HURT}-" in k.user else ""
    else:
        site.respond = lambda a: trouble if a.cell == HURT else None
    crawled = crawl(
        site, {"CELLS_TIMEOUT": 1}, scheme=scheme, n=60, reactor=reactor, timeout=60
    )
    expected = keys_by_cell(60)
    healthy = sorted(k for cell, ks in expected.items() if cell != HURT for k in ks)
    assert right_keys(crawled) == healthy
    assert sorted(a.key for a in site.arrivals if a.cell != HURT) == healthy
    assert all(a.user for a in site.arrivals)
    spent = sum(a.cell == HURT for a in site.arrivals)
    refused = sum(bool(k.fault) for k in site.knocks)
    assert 0 < max(spent, refused) <= MOST_SPENT
    outcomes = {
        name.rpartition("/")[2]
        for name in crawled.stats
        if name.startswith(f"cells/by_cell/{HURT}/outcome_count/")
    }
    assert outcomes - {"neutral"} == {outcome}
    # what it could not check is accounted for: tried in vain, or deferred
    assert crawled.reason == "cells_deferred"
    assert crawled.stats["cells/hole_count"] == len(expected[HURT])
    for cell in {f"{n:02d}" for n in range(COUNT)} - {HURT}:
        assert crawled.stats[f"cells/by_cell/{cell}/health"] == 1.0
        assert crawled.stats[f"cells/by_cell/{cell}/generation"] == 0
        assert crawled.event_types(cell) == []
