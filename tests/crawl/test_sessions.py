"""Sessions: sticky, apart from each other, and never left out."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from tests.crawl.common import (
    COUNT,
    HTML,
    crawl,
    keys,
    keys_by_cell,
    pages,
    right_keys,
)
from tests.harness.target import Reply

AGENTS = [f"Browser/{number} (X11, Linux)" for number in range(20)]
FORBIDDEN = "k00007"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_sessions_stay_with_their_keys_and_share_nothing(site, reactor, scheme):
    """Not a cookie, not a connection, not a user agent; robots.txt is no exception."""
    site.robots = f"User-agent: *\nDisallow: /p/{FORBIDDEN}\n".encode()
    settings = {"ROBOTSTXT_OBEY": True, "CELLS_USER_AGENTS": AGENTS}
    crawled = crawl(site, settings, "AgainSpider", scheme=scheme, n=40, reactor=reactor)
    allowed = [key for key in keys(40) if key != FORBIDDEN]
    assert right_keys(crawled) == sorted(allowed * 2)
    # nothing came but through a session, robots.txt neither
    assert [a for a in site.arrivals if not a.user] == []
    robots = [a for a in site.arrivals if a.path == "/robots.txt"]
    assert len(robots) == 1
    assert [a for a in site.arrivals if a.key == FORBIDDEN] == []
    # a key stays in its cell, and with its session
    users, cells = defaultdict(set), defaultdict(set)
    for arrival in pages(site.arrivals):
        users[arrival.key].add(arrival.user)
        cells[arrival.cell].add(arrival.key)
    assert Counter(map(len, users.values())) == {1: 39}
    expected = keys_by_cell(40)
    assert {c: sorted(ks) for c, ks in cells.items()} == {
        c: [k for k in ks if k != FORBIDDEN] for c, ks in expected.items()
    }
    assert len({a.user for a in site.arrivals}) > 2 * COUNT
    # what a session has is its own
    by_connection, by_user = defaultdict(set), defaultdict(set)
    for arrival in site.arrivals:
        by_connection[arrival.connection].add(arrival.user)
        by_user[arrival.user].add(arrival.headers["user-agent"])
        assert arrival.headers.get("cookie") in {None, f"visitor={arrival.user}"}
        assert "proxy-authorization" not in arrival.headers
    assert {len(used) for used in by_connection.values()} == {1}
    assert {len(agents) for agents in by_user.values()} == {1}
    assert set().union(*by_user.values()) <= set(AGENTS)
    assert len(set().union(*by_user.values())) > 1
    assert sum("cookie" in a.headers for a in site.arrivals) >= 39


def test_one_bad_session_is_replaced(site, reactor):
    """After three refusals; the others of its cell and its keys go on."""
    site.respond = lambda a: Reply(403, b"no", HTML) if a.session == "1" else None
    settings = {"CELLS_COUNT": 1, "CELLS_SESSIONS": 3}
    crawled = crawl(site, settings, n=40, reactor=reactor)
    assert right_keys(crawled) == keys(40)
    assert crawled.event_types() == ["SessionReplaced"]
    assert 3 <= sum(a.session == "1" for a in site.arrivals) <= 5
    assert {a.session for a in site.arrivals} == {"0", "1", "1r1", "2"}
    assert {a.generation for a in site.arrivals} == {"0"}


def test_without_proxies_sessions_still_keep_their_cookies_apart(site, reactor):
    """And a warning says what one exit address for all costs."""
    cookies = iter(range(1000))

    def respond(arrival):
        reply = site.usual(arrival)
        if "cookie" not in arrival.headers:
            reply.headers["Set-Cookie"] = f"visitor={next(cookies)}; Path=/"
        else:
            reply.headers.pop("Set-Cookie", None)
        return reply

    site.respond = respond
    settings = {"CELLS_PROXY": None, "CELLS_CONCURRENCY": 1, "CELLS_SESSIONS": 1}
    crawled = crawl(site, settings, n=40, reactor=reactor)
    assert right_keys(crawled) == keys(40)
    assert "CELLS_PROXY is not set" in crawled.log
    seen = defaultdict(set)
    cell_of = {k: cell for cell, ks in keys_by_cell(40).items() for k in ks}
    for arrival in site.arrivals:
        if "cookie" in arrival.headers:
            seen[arrival.headers["cookie"]].add(cell_of[arrival.key])
    assert len(seen) == COUNT
    assert {len(cells) for cells in seen.values()} == {1}
