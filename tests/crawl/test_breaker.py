"""The breaker of a cell, seen from the site."""

from __future__ import annotations

import itertools

from tests.crawl.common import HURT, crawl, keys, right_keys
from tests.harness.target import Reply

PROBE_TAKES = 0.3


def test_open_cell_lets_one_probe_out_at_a_time_and_heals(site, reactor):
    """Failed probes keep it open; the first that passes closes it, and nothing is lost."""
    hurt = itertools.count(1)

    def respond(arrival):
        if arrival.cell != HURT:
            return None
        number = next(hurt)
        if number <= 8:
            return Reply(503, b"down", delay=PROBE_TAKES)
        if number == 9:
            reply = site.usual(arrival)
            reply.delay = PROBE_TAKES
            return reply
        return None

    site.respond = respond
    settings = {
        "CELLS_BREAKER_THRESHOLD": 4,
        "CELLS_BREAKER_COOLDOWN": 0.2,
        "CELLS_BREAKER_MAX_COOLDOWN": 0.4,
        "CELLS_RAMP": 1,
        "CELLS_RETRY_TIMES": 9,
    }
    crawled = crawl(site, settings, n=40, reactor=reactor)
    assert right_keys(crawled) == keys(40)
    # four in flight at once open it, and four probes fail
    assert crawled.event_types(HURT) == [
        "CellOpened",
        *["CellProbed", "CellOpened"] * 4,
        "CellProbed",
        "CellClosed",
    ]
    assert [e for e in crawled.events if e["cell"] != HURT] == []
    times = [a.at for a in site.arrivals if a.cell == HURT]
    for before, after in itertools.pairwise(times[3:10]):
        assert after >= before + PROBE_TAKES
    assert crawled.stats[f"cells/by_cell/{HURT}/outcome_count/server_error"] == 8
