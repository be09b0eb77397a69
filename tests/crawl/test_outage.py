"""All cells fail at once: that is no cell's fault."""

from __future__ import annotations

from collections import Counter

from tests.crawl.common import COUNT, crawl, keys, right_keys
from tests.harness.target import Reply


def test_nobody_gives_up_sessions_in_an_outage(site, reactor):
    """Nor when every cell fails more often than would cost it its cohort."""
    seen = Counter()

    def respond(arrival):
        seen[arrival.cell] += 1
        return Reply(503, b"down") if seen[arrival.cell] <= 9 else None

    site.respond = respond
    settings = {
        "CELLS_BREAKER_THRESHOLD": 100,
        "CELLS_RETRY_TIMES": 9,
        "CELLS_RETRY_DELAY": 1,
        "CELLS_RATE": 12,
        "CELLS_BURST": 1,
    }
    crawled = crawl(site, settings, n=48, reactor=reactor)
    assert crawled.event_types() == ["OutageSuspected", "OutageEnded"]
    assert {a.generation for a in site.arrivals} == {"0"}
    assert right_keys(crawled) == keys(48)


def test_end_of_an_outage_is_found_by_one_cell_for_all(site, reactor):
    """Open cells need not wait for their cooldowns."""
    seen = Counter()

    def respond(arrival):
        seen[arrival.cell] += 1
        return Reply(503, b"down") if seen[arrival.cell] <= 4 else None

    site.respond = respond
    settings = {
        "CELLS_BREAKER_THRESHOLD": 4,
        "CELLS_RATE": 20,
        "CELLS_BURST": 1,
        "CELLS_CONCURRENCY": 1,
        "CELLS_RAMP": 1,
        "CELLS_RETRY_TIMES": 9,
    }
    crawled = crawl(site, settings, n=40, reactor=reactor)
    assert right_keys(crawled) == keys(40)
    events = crawled.event_types()
    assert events.count("CellOpened") == events.count("CellClosed") == COUNT
    assert events.count("OutageSuspected") == events.count("OutageEnded") == 1
    assert set(events) <= {
        "CellOpened",
        "CellProbed",
        "CellClosed",
        "OutageSuspected",
        "OutageEnded",
    }
    ended = events.index("OutageEnded")
    assert events[:ended].count("CellProbed") == 1
