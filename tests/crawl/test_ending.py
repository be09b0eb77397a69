"""A crawl that is to end ends, whatever its cells wait for."""

from __future__ import annotations

import time

from tests.crawl.common import COUNT, crawl, keys
from tests.harness.target import Reply


def quiet(site):
    """Whether nothing came for a while: then all there is to do was read and tried."""
    return time.monotonic() - site.arrivals[-1].at > 0.7


def test_interrupt_while_every_cell_is_open(site, reactor, tmp_path):
    """Nobody waits for a cooldown, and what was not done is told."""
    site.respond = lambda a: Reply(503, b"down")
    settings = {
        "CELLS_BREAKER_THRESHOLD": 3,
        "CELLS_CONCURRENCY": 1,
        "CELLS_MAX_WAIT": 10_000,
        "CELLS_RETRY_TIMES": 9,
    }
    crawled = crawl(
        site,
        settings,
        n=40,
        reactor=reactor,
        timeout=60,
        interrupt_when=lambda: len(site.arrivals) >= 3 * COUNT and quiet(site),
    )
    assert crawled.reason == "shutdown"
    assert crawled.items == []
    assert crawled.stats["cells/hole_count"] == 40


def test_interrupt_while_every_session_hangs(site, reactor):
    """What is in flight has its timeout, and nothing new is begun."""
    site.respond = lambda a: Reply(fault="hang")
    crawled = crawl(
        site,
        {"CELLS_TIMEOUT": 3, "CELLS_COUNT": 3},
        n=40,
        reactor=reactor,
        timeout=60,
        interrupt_when=lambda: len(site.arrivals) >= 12 and quiet(site),
    )
    assert crawled.reason == "shutdown"
    assert len(site.arrivals) == 12
    assert crawled.stats["cells/hole_count"] == 40


def test_close_spider_raised_in_a_callback(site, reactor):
    """Its reason is the crawl's, and what waits for its budget is not waited for."""
    settings = {"CELLS_RATE": 0.001, "CELLS_BURST": 1, "CELLS_MAX_WAIT": 10_000}
    crawled = crawl(site, settings, "CloseSpiderSpider", n=40, reactor=reactor)
    assert crawled.reason == "seen_enough"
    assert 1 <= len(site.arrivals) <= COUNT
    assert crawled.stats["cells/hole_count/seen_enough"] == 40 - len(site.arrivals)
    assert {a.key for a in site.arrivals} <= set(keys(40))
