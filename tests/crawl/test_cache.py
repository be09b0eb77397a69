"""Scrapy's HTTP cache."""

from __future__ import annotations

from tests.crawl.common import base_of, captcha, crawl, keys, right_keys, usual_settings
from tests.harness.crawl import run_crawl

N = 24


def test_cached_pages_cost_no_token_and_a_cached_wall_is_fetched_afresh(
    site, reactor, tmp_path
):
    """A crawl of cached pages goes on with a budget of next to nothing."""
    cache = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": str(tmp_path)}
    site.respond = lambda a: captcha() if a.key == "k00007" else None
    # without cells, the wall is stored as if it were a page
    plain = usual_settings(site, **cache, CELLS_ENABLED=False)
    stored = run_crawl(plain, base=base_of(site), n=N, reactor=reactor)
    assert stored.stats["httpcache/store"] == N
    site.respond = lambda a: None
    site.arrivals.clear()
    settings = {**cache, "CELLS_RATE": 0.001, "CELLS_BURST": 2}
    crawled = crawl(site, settings, n=N, reactor=reactor)
    assert right_keys(crawled) == keys(N)
    assert crawled.reason == "finished"
    assert [a.key for a in site.arrivals] == ["k00007"]
    assert crawled.stats["httpcache/hit"] == N
    assert crawled.stats["cells/request_count"] == 1
    assert crawled.stats["cells/outcome_count/ok"] == 1
