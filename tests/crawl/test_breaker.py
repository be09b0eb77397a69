"""The breaker of a cell, seen from the site."""

from __future__ import annotations

from itertools import count, pairwise

from tests.crawl.common import HURT, crawl, keys, right_keys
from tests.harness.target import Reply

PROBE_TAKES = 0.2
FAILURES = 9


def test_open_cell_lets_one_probe_out_at_a_time_and_heals(site, reactor):
    """Failed probes keep it open, the first that passes closes it; nothing is lost."""
    hurt = count(1)

    def respond(arrival):
        if arrival.cell != HURT:
            return None
        number = next(hurt)
        if number <= FAILURES:
            return Reply(503, b"down", delay=PROBE_TAKES)
        if number == FAILURES + 1:
            reply = site.usual(arrival)
            reply.delay = PROBE_TAKES
            return reply
        return None

    site.respond = respond
    settings = {
        "CELLS_BREAKER_THRESHOLD": 4,
        "CELLS_BREAKER_COOLDOWN": 0.1,
        "CELLS_BREAKER_MAX_COOLDOWN": 0.2,
        "CELLS_RAMP": 0.5,
        "CELLS_RETRY_TIMES": 9,
    }
    crawled = crawl(site, settings, n=40, reactor=reactor)
    assert right_keys(crawled) == keys(40)
    events = crawled.event_types(HURT)
    failed = events.count("CellProbed") - 1
    # seven at most were under way when the fourth failure opened it
    assert failed >= FAILURES - 7
    assert events == [
        "CellOpened",
        *["CellProbed", "CellOpened"] * failed,
        "CellProbed",
        "CellClosed",
    ]
    assert [e for e in crawled.events if e["cell"] != HURT] == []
    times = [a.at for a in site.arrivals if a.cell == HURT]
    for before, after in pairwise(times[FAILURES - failed : FAILURES + 2]):
        assert after >= before + PROBE_TAKES
    errors = crawled.stats[f"cells/by_cell/{HURT}/outcome_count/server_error"]
    assert errors == FAILURES
