"""Redirects: every hop stays with the cell and the session of the first."""

from __future__ import annotations

import pytest

from tests.crawl.common import HTML, crawl, keys, keys_by_cell, right_keys
from tests.harness.target import Reply


def lead_on(arrival):
    """To the product, by 302, 307 or a meta refresh."""
    to = f"/p/{arrival.key}"
    cookie = {"Set-Cookie": f"visitor={arrival.user}; Path=/"}
    if "/found/" in arrival.path:
        return Reply(302, headers={"Location": to, **cookie})
    if "/post/" in arrival.path:
        return Reply(307, headers={"Location": to, **cookie})
    if "/refresh/" in arrival.path:
        page = f'<html><meta http-equiv="refresh" content="0; url={to}"></html>'
        return Reply(body=page.encode(), headers={**HTML, **cookie})
    return None


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_every_hop_keeps_cell_and_session(site, reactor, scheme):
    """302, 307 of a POST and meta refresh alike; each hop costs a token.

    A cell that may have a single request under way gets through all of them too.
    """
    site.respond = lead_on
    settings = {"CELLS_CONCURRENCY": 1} if scheme == "https" else {}
    crawled = crawl(
        site, settings, "RedirectSpider", scheme=scheme, n=24, reactor=reactor
    )
    assert right_keys(crawled) == keys(24)
    assert crawled.failures == []
    cells = {k: cell for cell, ks in keys_by_cell(24).items() for k in ks}
    for key in keys(24):
        hops = [a for a in site.arrivals if a.key == key]
        assert len(hops) == 2
        assert {a.user for a in hops} == {hops[0].user}
        assert hops[0].cell == cells[key]
        assert hops[1].headers["cookie"] == f"visitor={hops[0].user}"
        assert hops[0].method == hops[1].method
    assert crawled.stats["cells/request_count"] == 48


def test_redirect_to_a_wall_is_not_followed(site, reactor):
    """It is the end of the way, and the key is tried through other sessions."""
    wall = "https://geo.captcha-delivery.com/captcha/?cid=1"

    def respond(arrival):
        if arrival.key == "k00004":
            return Reply(302, headers={"Location": wall})
        return None

    site.respond = respond
    crawled = crawl(site, n=12, reactor=reactor)
    assert right_keys(crawled) == [k for k in keys(12) if k != "k00004"]
    [failure] = crawled.failures
    assert failure["error"] == "CellBlocked"
    assert failure["url"].endswith("/p/k00004")
    tried = [a for a in site.arrivals if a.key == "k00004"]
    assert len(tried) == len({a.user for a in tried}) == 3
    assert [k for k in site.knocks if "captcha-delivery" in k.target] == []
