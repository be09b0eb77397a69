"""Downloads of a callback's own, past the scheduler."""

from __future__ import annotations

from tests.crawl.common import (
    HURT,
    crawl,
    keys,
    keys_by_cell,
    over_budget,
    right_keys,
)
from tests.harness.target import Reply


def test_download_goes_through_the_parents_cell_and_session(site, reactor):
    """Several at once as well, all at the cost of the cell's budget."""
    settings = {"CELLS_RATE": 10, "CELLS_BURST": 4}
    crawled = crawl(site, settings, "AsideSpider", n=20, reactor=reactor)
    assert right_keys(crawled) == keys(20)
    assert [i["aside"] for i in crawled.items] == [[200, 200]] * 20
    users = {a.key: a.user for a in site.arrivals if "/p/" in a.path}
    assert len(site.arrivals) == 60
    assert [a for a in site.arrivals if a.user != users[a.key]] == []
    for cell in keys_by_cell(20):
        times = [a.at for a in site.arrivals if a.cell == cell]
        assert over_budget(times, 4, 10) < 3


def test_download_through_a_closed_cell_ends_with_an_error(site, reactor):
    """Who waits for it in a callback is told at once, and the crawl ends."""
    site.respond = lambda a: (
        Reply(429, b"wait", {"Retry-After": "3600"})
        if a.cell == HURT and "/a/" in a.path
        else None
    )
    settings = {"CELLS_CONCURRENCY": 1}
    crawled = crawl(site, settings, "AsideSpider", n=20, reactor=reactor)
    mine = keys_by_cell(20)[HURT]
    asides = {i["key"]: i["aside"] for i in crawled.items}
    assert {k: a for k, a in asides.items() if k not in mine} == {
        k: [200, 200] for k in keys(20) if k not in mine
    }
    got = [a for k, a in asides.items() if k in mine]
    assert {a for a, _ in got} <= {"CellUnavailable", "CellBlocked"}
    assert got
    assert 1 <= sum(a.status == 429 for a in site.arrivals) <= len(got)
    # the pages that were not on their way yet wait in the queue
    assert crawled.stats["cells/deferred_count"] == len(mine) - len(got)
