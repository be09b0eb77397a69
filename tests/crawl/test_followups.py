"""Requests that callbacks make."""

from __future__ import annotations

from scrapy_cells.domain.router import HashRouter
from tests.crawl.common import crawl, keys
from tests.harness.target import Reply

OFFERS = r"regex:/(?:p|offers)/(\w+)"


def test_follow_ups_keep_cell_and_session_and_own_keys_are_routed(site, reactor):
    """Copied meta does no harm to the route, nor to the tries that are left."""
    failed = set()

    def respond(arrival):
        # twice for every product, and twice for its neighbour
        tries = sum(a.path == arrival.path for a in site.arrivals)
        if arrival.path.startswith("/p/") and arrival.key[-1] == "3" and tries <= 2:
            failed.add(arrival.path)
            return Reply(503, b"down")
        return None

    site.respond = respond
    settings = {"CELLS_KEY": OFFERS, "CELLS_RETRY_TIMES": 2}
    crawled = crawl(site, settings, "FollowSpider", n=20, reactor=reactor)
    assert crawled.failures == []
    assert len(crawled.items) == 80
    assert len(failed) == 4
    router = HashRouter(4)
    products = [a for a in site.arrivals if a.path.startswith("/p/")]
    users = {a.key: a.user for a in products}
    for arrival in site.arrivals:
        if arrival.path.startswith("/p/"):
            assert arrival.cell == router.route(arrival.key)
        else:
            assert arrival.user == users[arrival.key]
    assert {a.key for a in products} == {
        *keys(20),
        *(f"k{n:05d}" for n in range(500, 520)),
    }
