"""Never over budget: counted where requests arrive, whatever they are for.

Requests are on their way for a while, so that a window at the site may hold a few more
than were sent within it. Without a budget it would hold all of them.
"""

from __future__ import annotations

from tests.crawl.common import crawl, keys, keys_by_cell, over_budget, right_keys
from tests.harness.target import Reply

LATE = 2.0
"""Requests that may arrive together although they left one after the other."""


def test_cell_keeps_to_its_budget_in_every_window(site, reactor):
    """Redirects, retries and robots.txt included."""
    failed = set()

    def respond(arrival):
        if arrival.key == "robots.txt":
            return None
        if "/p/" not in arrival.path:
            return Reply(307, headers={"Location": f"/p/{arrival.key}"})
        if arrival.key[-1] in "37" and arrival.key not in failed:
            failed.add(arrival.key)
            return Reply(503, b"down")
        return None

    site.respond = respond
    settings = {
        "CELLS_RATE": 6,
        "CELLS_BURST": 3,
        "CELLS_CONCURRENCY": 8,
        "ROBOTSTXT_OBEY": True,
    }
    crawled = crawl(site, settings, "RedirectSpider", n=24, reactor=reactor)
    assert right_keys(crawled) == keys(24)
    assert len(site.arrivals) == 48 + len(failed) + 1
    for cell in keys_by_cell(24):
        times = [a.at for a in site.arrivals if a.cell == cell]
        assert len(times) > 5
        assert over_budget(times, 3, 6) <= LATE


def test_all_cells_together_keep_to_the_site_rate(site, reactor):
    """In every window, also at the start, where all could send at once."""
    settings = {
        "CELLS_COUNT": 6,
        "CELLS_RATE": 100,
        "CELLS_BURST": 5,
        "CELLS_SITE_RATE": 18,
    }
    crawled = crawl(site, settings, n=30, reactor=reactor)
    assert right_keys(crawled) == keys(30)
    assert over_budget([a.at for a in site.arrivals], 6, 18) <= LATE
    assert "(CELLS_SITE_RATE=18 over 6 cells)" in crawled.log
